"""The read that all warps share: images of any dtype and batch, at the points of a coordinate function."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from .._checks.hints import mention_layout
from .._checks.numbers import as_array, as_float
from .._checks.texels import check_sizes
from .._engine.api import Operand, SizedTexture, Stacked, decode, footprint_level, numbers
from .._jax.barriers import with_materialized
from .._jax.calls import typed_jit
from .._jax.float_bits import rounded_to
from .._jax.indexing import over_batch
from .._reads import smoothed
from .._reads.calls import sample_grid
from .._reads.complex_parts import color_of_parts, from_parts, parts_of
from .._tables.storage_formats import Decoding, is_complex, sum_dtype
from ..mipmaps import along_axes, build_mipmaps, next_level, with_levels
from ..modes import Arithmetic, ReadMode, TextureKind
from ..sampler import Sampler, check_modes, check_sampler
from ..sampling import sample
from ..texture import Texture, chain_shapes, check_color, texture1d, texture2d, texture3d
from .coordinate_functions import Arrays, GridFunction, is_affine, pixel_centers
from .options import ReadOptions, as_floats, broadcast, check_axes, check_pixels, dtype_of

Tree = TypeVar("Tree")
TEXTURES = {1: texture1d, 2: texture2d, 3: texture3d}
KINDS = {1: TextureKind.TEXTURE1D, 2: TextureKind.TEXTURE2D, 3: TextureKind.TEXTURE3D}
# Integers that hardware arithmetic blends as fractions of their largest value.
BLENDED_AS_FRACTIONS = (jnp.uint8, jnp.uint16)
# The most channels of a pixel that a thread computes and rounds.
MOST_CHANNELS = 32


def warp_image(
    name: str,
    image: ArrayLike,
    function: GridFunction,
    parameters: Sequence[ArrayLike | Stacked],
    output_shape: Sequence[int],
    options: ReadOptions,
    footprint: tuple[Arrays, ...] | None = None,
    *,
    argument: str = "image",
) -> jax.Array:
    """Reads an image at the points that a coordinate function computes from the pixels of the output.

    Args:
        name: of the public function, for errors.
        image: leading batch axes, the spatial axes and channels.
        function: a coordinate function: ``function(*pixels, *parameters)`` returns the points to read, in pixels.
        parameters: arrays of leading batch axes and one axis for each of `output_shape`, of its size or 1. One that is
            stacked holds several parameters.
        output_shape: the spatial sizes of the output, slowest axis first.
        options: how to read, and the dtype of the result.
        footprint: the derivatives of the points along each axis of the output, x first. The default is the derivative
            of `function`, or, if a parameter is a field, the differences between neighboring pixels.
        argument: the name of the image, for errors.
    """
    ndim = len(output_shape)
    pixels = as_array(image)
    check_image(name, pixels, ndim, argument, may_be_complex=True)
    if options.antialias:
        came = f"{name}: antialias is True, and the shape of the output is {tuple(output_shape)}"
        check_sizes(came, output_shape)
    if is_complex(pixels.dtype):
        check_reads(name, options, ndim, pixels.dtype, pixels.shape)
        image, options = parts_of_image(name, pixels, options)
        return from_parts(warp_image(name, image, function, parameters, output_shape, options, footprint))
    pixels, options = as_numbers(pixels, options)
    check_reads(name, options, ndim, pixels.dtype, pixels.shape)
    arrays, shape = batched(name, argument, pixels, parameters, tuple(output_shape))
    if 0 in shape:
        return jnp.zeros(shape, options.result)
    sizes, batch = tuple(output_shape), len(shape) - ndim - 1
    return warp_checked(pixels, arrays, footprint, options, function=function, output_shape=sizes, batch=batch)


def batched(
    name: str,
    argument: str,
    image: Any,
    parameters: Sequence[ArrayLike | Stacked],
    output_shape: tuple[int, ...],
) -> tuple[tuple[Operand, ...], tuple[int, ...]]:
    """Parameters as floating arrays, and the shape of the result, whose batch axes are theirs and those of the image.

    Args:
        argument: the name of the image, for errors.
    """
    ndim = len(output_shape)
    arrays, batch = floating_parameters(parameters, ndim, image), image.shape[: -ndim - 1]
    others = [p.shape[:-ndim] for p in arrays]
    found = broadcast(batch, *others)
    if found is None:
        given = " and ".join(str(shape) for shape in dict.fromkeys(others) if shape)
        raise ValueError(
            f"{name}: the batch axes of {argument} are {batch}, and those of the other arguments are {given}, which do "
            f"not broadcast; pass equal sizes, or 1."
        )
    shape = (*found, *output_shape, image.shape[-1])
    if 0 not in shape:
        check_pixels(name, argument, image.shape, ndim)
    return arrays, shape


def check_image(name: str, image: Any, ndim: int, argument: str = "image", *, may_be_complex: bool = False) -> None:
    check_axes(name, argument, image.shape, ndim)
    kinds = (jnp.inexact if may_be_complex else jnp.floating, jnp.integer, jnp.bool_)
    if not any(jnp.issubdtype(image.dtype, kind) for kind in kinds):
        numbers = "floating or complex numbers" if may_be_complex else "floating numbers"
        raise TypeError(
            f"{name}: {argument} has dtype {image.dtype}, expected {numbers}, integers or bool; convert it with "
            f"{argument}.astype."
        )
    if ndim == 2:
        mention_layout(name, argument, image.shape, image.dtype)


def check_has_values(name: str, image: object) -> None:
    """Raises a TypeError for an image that JAX traces, in a function that returns arrays of NumPy."""
    if isinstance(image, Tracer):
        raise TypeError(
            f"{name}: image is a traced array, expected an image with values, for results are arrays of NumPy; call it "
            "outside of jax.jit, jax.vmap and fused_map, or call resize or resample."
        )


def check_reads(name: str, options: ReadOptions, ndim: int, stored: np.dtype[Any], shape: Sequence[int]) -> None:
    """Checks the options of reads of images of `ndim` axes, a shape, and numbers of dtype `stored`.

    Integer elements count as the dtype in which they are blended.
    """
    width, channels = shape[-2:]
    if jnp.issubdtype(stored, jnp.inexact) or options.sampler.decoding is not Decoding.ELEMENT:
        check_sampler(name, KINDS[ndim], stored, 1, width, options.sampler)
    check_modes(name, options.sampler, ndim, width)
    if options.border_color is not None:
        check_color(name, jnp.asarray(options.border_color), channels, stored=stored)


def parts_of_image(name: str, image: Any, options: ReadOptions) -> tuple[jax.Array, ReadOptions]:
    """A complex image as one of its real and imaginary parts, and the options to read it with."""
    image, stored = jnp.asarray(image), dtype_of(image)
    color = color_of_parts(options.border_color, stored, image.shape[-1])
    if options.dtype is not None:
        raise ValueError(
            f"{name}: dtype is {options.dtype}, expected {stored}, that of the image; leave dtype out, and convert the "
            "result."
        )
    return parts_of(image), options.replace(border_color=color)


def as_numbers(image: Any, options: ReadOptions) -> tuple[Any, ReadOptions]:
    """An image that holds numbers, and the options to read it with, which name the dtype of the result.

    The default dtype is that of the image, and float32 where the sampler reads fractions. A mask of bool is read as 0
    and 1; a filter that blends returns float32.
    """
    sampler = options.sampler
    is_mask, fractions = image.dtype == jnp.bool_, sampler.read_mode is not ReadMode.ELEMENT
    blends = options.antialias or sampler.kernel.blends
    if options.dtype is None:
        options = options.replace(dtype=np.dtype(np.float32 if fractions or (is_mask and blends) else image.dtype))
    if is_mask:
        image = image.astype(np.float32 if blends else np.uint8)
        options = options.with_sampler(read_mode="element", srgb=False)
    return image, options


class Window(NamedTuple):
    """The stored part of an image: the sizes of the image, and the first texel of the part along each axis.

    It holds all texels that the pixels of interest need; see `SizedTexture`.
    """

    sizes: Arrays
    starts: Arrays


@typed_jit("function", "output_shape", "batch")
def warp_checked(
    image: jax.Array,
    parameters: tuple[Operand, ...],
    footprint: tuple[Arrays, ...] | None,
    options: ReadOptions,
    window: Window | None = None,
    *,
    function: GridFunction,
    output_shape: tuple[int, ...],
    batch: int,
) -> jax.Array:
    ndim, dtype, border_color = len(output_shape), options.result, options.border_color
    sampler, antialias = options.sampler, options.antialias
    rounds = not jnp.issubdtype(dtype, jnp.floating)
    if rounds:  # then there is no gradient
        image, parameters, border_color = jax.lax.stop_gradient((image, parameters, border_color))
    operands = grid_operands(parameters, output_shape, batch, image.dtype)
    image = jnp.expand_dims(image, range(batch + ndim + 1 - image.ndim))
    takes_means = antialias and sampler.arithmetic is Arithmetic.FLOAT
    scale, as_integers = 1, not antialias and blends_integers(image.dtype, sampler)
    if not (as_integers or takes_means):
        image, sampler, scale = as_blended(image, sampler, antialias)
    color = None if border_color is None else as_float(border_color) / scale

    def texture(image: jax.Array, color: jax.Array | None) -> Texture:
        return TEXTURES[ndim](image, border_color=color)

    def stored(image: jax.Array, color: jax.Array | None) -> Texture | SizedTexture:
        if window is None:
            return texture(image, color)
        texels = image.reshape(-1, image.shape[-1])
        return SizedTexture(texels, window.sizes, color, window=image.shape[:-1], starts=window.starts)

    def read(image: jax.Array, *operands: Operand, color: jax.Array | None) -> jax.Array:
        how = {"as_numbers": as_integers, "materialized": not rounds, "planar": options.planar and not rounds}
        return read_at(stored(image, color), function, operands, sampler, options.kept_axes, **how)

    def read_antialiased(image: jax.Array, *arrays: jax.Array) -> jax.Array:
        coords, *sides = (arrays[k : k + ndim] for k in range(0, len(arrays), ndim))
        if takes_means:
            return read_smoothed(texture(image, color), coords, sides, sampler, alone=batch == 0)
        return sample_in_chain(texture(image, color), coords, sides, sampler)

    if antialias:
        given = numbers(operands)
        sides = footprint_of(function, given, ndim) if footprint is None else of_rank(footprint, given[0])
        coords = [jnp.expand_dims(c, range(batch + ndim - c.ndim)) for c in function(*given)]
        out = over_batch(read_antialiased, batch)(image, *coords, *(a for side in sides for a in side))
        return converted(out * scale, dtype)

    def pixels(image: jax.Array, *operands: Operand) -> jax.Array:
        return converted(over_batch(functools.partial(read, color=color), batch)(image, *operands) * scale, dtype)

    if not rounds:
        return pixels(image, *operands)
    returned = image.dtype if sampler.decoding is Decoding.ELEMENT and not sampler.kernel.blends else None
    if window is not None or returned == dtype or not is_small(image, operands):
        # Numbers are rounded in the loop that reads them.
        return with_materialized(pixels, (0,))(image, *operands)
    # A thread reads and rounds a pixel.
    from .._engine.api import samples_of  # loaded only for integers

    colors = [] if color is None else [color.reshape(*[1] * batch, *color.shape)]

    def pixel(image: jax.Array, *args: Operand) -> list[jax.Array]:
        own = cast(jax.Array, args[0]) if colors else None
        return [converted(read(image, *args[len(colors) :], color=own) * scale, dtype)]

    def in_one_kernel(*args: Operand) -> jax.Array:
        return samples_of(pixel, args, shared=range(1 + len(colors)), batch=batch)[0]

    return with_materialized(in_one_kernel, (0,))(image, *colors, *operands)


def is_small(image: jax.Array, operands: Sequence[Operand]) -> bool:
    """Whether a thread can compute all channels of a pixel, in float32."""
    return image.shape[-1] <= MOST_CHANNELS and all(a.dtype == np.float32 for a in jax.tree.leaves(operands))


def read_at(
    texture: Texture | SizedTexture,
    function: GridFunction,
    operands: Sequence[Operand],
    sampler: Sampler,
    kept_axes: tuple[int, ...] = (),
    **how: bool,
) -> jax.Array:
    """The read of a texture at the points, in pixels, of a coordinate function.

    Args:
        kept_axes: as in `ReadOptions`.
        how: `as_numbers`, `materialized` and `planar`, as in `sample_grid`.
    """
    in_pixels = dataclasses.replace(sampler, normalized_coords=False)
    axes = texture.kind.texel_ndim if is_affine(function) else 0
    return sample_grid(texture, function, operands, in_pixels, affine_axes=axes, nearest_axes=kept_axes, **how)


def floating_parameters(parameters: Sequence[ArrayLike | Stacked], ndim: int, image: Any) -> tuple[Operand, ...]:
    """Parameters as floating arrays, with `ndim` axes of the samples at least, and the precision of an image."""
    found: list[Operand] = []
    for p in parameters:
        (array,) = as_floats(p.array if isinstance(p, Stacked) else p, like=image)
        array = jnp.expand_dims(array, range(ndim + isinstance(p, Stacked) - array.ndim))
        found.append(dataclasses.replace(p, array=array) if isinstance(p, Stacked) else array)
    return tuple(found)


def grid_operands(
    parameters: Sequence[Operand], output_shape: Sequence[int], batch: int, stored: np.dtype[Any]
) -> tuple[Operand, ...]:
    """The operands of a coordinate function: the centers of pixels and parameters, of one dtype and one rank.

    They have the precision of the image, of dtype `stored`, or that of the parameters if it is higher.
    """
    precision, rank = sum_dtype(stored, *(a.dtype for a in jax.tree.leaves(parameters))), batch + len(output_shape)
    like = jnp.zeros([1] * rank, precision)
    ranked = [of_rank(p, like[None] if isinstance(p, Stacked) else like) for p in parameters]
    return (*of_rank(pixel_centers(output_shape, precision), like), *ranked)


def of_rank(arrays: Tree, like: jax.Array) -> Tree:
    """Arrays of the dtype and the rank of another one."""

    def converted(a: jax.Array) -> jax.Array:
        return jnp.expand_dims(a.astype(like.dtype), range(like.ndim - a.ndim))

    return jax.tree.map(converted, arrays)


def blends_integers(stored: np.dtype[Any], sampler: Sampler) -> bool:
    """Whether a filter blends integers as numbers, which a texture unit cannot do."""
    elements = jnp.issubdtype(stored, jnp.integer) and sampler.read_mode is ReadMode.ELEMENT
    return elements and sampler.kernel.blends and sampler.arithmetic is Arithmetic.FLOAT


def as_blended(image: jax.Array, sampler: Sampler, antialias: bool) -> tuple[jax.Array, Sampler, int]:
    """An image whose texels a filter can blend, the sampler to read it with, and the factor for the result."""
    if not jnp.issubdtype(image.dtype, jnp.integer) or not (sampler.kernel.blends or antialias):
        return image, sampler, 1
    if sampler.read_mode is not ReadMode.ELEMENT:
        if antialias:
            image = decode(image, sampler.decoding, np.dtype(np.float32))
            sampler = dataclasses.replace(sampler, read_mode="element", srgb=False)
        return image, sampler, 1
    if image.dtype in BLENDED_AS_FRACTIONS and not antialias:
        return image, dataclasses.replace(sampler, read_mode="normalized_float"), int(jnp.iinfo(image.dtype).max)
    return image.astype(jnp.float32), sampler, 1


def converted(values: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    """Values in the dtype of the result.

    Integers are rounded, half to even, and clipped to the range of the dtype. A bool is true above 0.5.
    """
    if jnp.issubdtype(values.dtype, jnp.floating):
        if dtype == jnp.bool_:
            return values > 0.5
        if jnp.issubdtype(dtype, jnp.integer):
            return rounded_to(values, dtype)
    return values.astype(dtype)


def footprint_of(function: GridFunction, operands: Sequence[jax.Array], ndim: int) -> tuple[Arrays, ...]:
    """The footprints of the output's pixels: the derivatives of the coordinates along x, y (and z).

    A field is known only at the centers of pixels. If a parameter is one, differences between neighbors replace the
    derivative of `function`.
    """
    pixels, parameters = operands[:ndim], operands[ndim:]
    if any(n > 1 for p in parameters for n in p.shape[p.ndim - ndim :]):
        coords = jnp.broadcast_arrays(*function(*operands))
        return tuple(tuple(difference(c, -1 - k) for c in coords) for k in range(ndim))

    def of_pixels(*pixels: jax.Array) -> Arrays:
        return function(*pixels, *parameters)

    if is_affine(function):  # all pixels have the footprint of the first one
        pixels = [jax.lax.slice_in_dim(p, 0, 1, axis=-1 - k) for k, p in enumerate(pixels)]
    return along_axes(of_pixels, pixels)


def difference(values: jax.Array, axis: int) -> jax.Array:
    """Central differences, one-sided at the ends."""
    return jnp.asarray(jnp.gradient(values, axis=axis)) if values.shape[axis] > 1 else jnp.zeros_like(values)


def read_smoothed(
    texture: Texture, coords: Arrays, sides: Sequence[Arrays], sampler: Sampler, *, alone: bool
) -> jax.Array:
    """A read of a texture of one level, smoothed over footprints; float32, or float64 for float64 operands.

    Args:
        texture: of one level, of any dtype; integers that are read as elements are numbers.
        coords: in texels, or directions of a cubemap.
        sides: of the footprints, in the same units.
        sampler: in float arithmetic.
        alone: whether the program reads one image, and may branch for all samples together.
    """
    # Reverse mode keeps the texels and the operands of the coordinates, and computes levels and blends again.
    read = cast(Callable[..., jax.Array], jax.checkpoint(functools.partial(chained, sampler=sampler, alone=alone)))
    return read(texture, coords, tuple(sides))


def chained(texture: Texture, coords: Arrays, sides: tuple[Arrays, ...], *, sampler: Sampler, alone: bool) -> jax.Array:
    """`read_smoothed`, with the levels that it needs."""
    num_levels = len(chain_shapes(texture.kind, texture.shape, None, "resample"))
    at = smoothed.smoothing_at(texture, coords, sides, sampler, num_levels)
    numbers, sizes = functools.partial(smoothed.decoded, texture, sampler.decoding, at.sums), texture.shape[-2::-1]
    first = functools.partial(smoothed.sharp, texture, at, sampler, materialized=not alone)

    def second() -> jax.Array:
        return smoothed.smooth_in_chain(next_level(numbers()), sizes, at._replace(level=None), sampler)

    def chain() -> jax.Array:
        return smoothed.smooth_in_chain(with_levels(numbers(), num_levels=num_levels), sizes, at, sampler)

    if num_levels == 1:
        return first()
    if not alone:
        return smoothed.blended(first(), chain(), at.share)
    # The chain takes most of the time, so it is computed only if a sample needs it.
    finest = functools.partial(smoothed.smooth, texture, at, sampler, materialized=False)
    return smoothed.switched(at, smoothed.reads_needed(at), first, finest, second, chain)


def sample_in_chain(texture: Texture, coords: Arrays, sides: Sequence[Arrays], sampler: Sampler) -> jax.Array:
    """The hardware read through a mip chain, at the level of detail of a footprint, in texels."""
    sizes = texture.shape[-2::-1]

    def normalized(arrays: Arrays) -> Arrays:
        return tuple(a / n for a, n in zip(arrays, sizes))

    sampler = dataclasses.replace(sampler, normalized_coords=True, mipmap_filter_mode="linear")
    chain = build_mipmaps(texture)
    if len(sides) == 3 and sampler.arithmetic is Arithmetic.HARDWARE:
        # No texture unit takes the third side of a voxel's footprint.
        return sample(chain, normalized(coords), sampler, lod=footprint_level(sides, sides, 1).lod)
    footprint = dict(zip(("ddx", "ddy", "ddz"), map(normalized, sides)))
    return sample(chain, normalized(coords), sampler, **footprint)
