"""Whole reads, in either arithmetic: from a texture and the arrays of a call to values, as compiled functions."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._checks.numbers import as_float
from .._engine.arithmetic import FLOAT, READ, ReadArithmetic, read_where_placed, splat_where_placed
from .._engine.compute.texel_value import num_colors, read_dtype
from .._engine.describe.operands import Arrays, Coords, Operand, SeveralReads, split
from .._engine.describe.plan import (
    Layout,
    ReadArguments,
    ResolvedLevel,
    SizedTexture,
    plan_of_grid,
    plan_of_level,
    plan_of_texels,
    sizes_of,
)
from .._engine.describe.spec import Combination, Read
from .._engine.walk.drawn_taps import DrawnTaps
from .._jax.calls import typed_jit
from .._jax.indexing import reshaped
from .._jax.primitives import straight_through
from .._tables.address_rules import BORDER, LAST
from .._tables.filter_kernels import LINEAR_TAPS, POINT
from .._tables.storage_formats import (
    Decoding,
    is_blended,
    is_complex,
    real_dtype,
    rounded_dtype,
    storage_format,
    sum_dtype,
)
from ..modes import Arithmetic, FilterMode, TextureKind
from ..sampler import Sampler
from ..texture import Texture
from .complex_parts import by_parts, in_parts


def numbers_of(
    texture: Texture | SizedTexture, decoding: Decoding, coords: Sequence[jax.Array], *, blends: bool
) -> tuple[np.dtype, bool]:
    """The dtype in which a read decodes, weights and sums texels, and whether it has derivatives.

    Stored integers that are read as elements have none, unless `blends` says that they are blended.
    """
    row = storage_format(texture.dtype)
    if decoding is Decoding.ELEMENT and not row.floating and not blends:
        return np.dtype(texture.dtype), False
    return sum_dtype(texture.dtype, *(c.dtype for c in coords)), True


def blends(texture: Texture | SizedTexture, sampler: Sampler) -> bool:
    """Whether a read combines several texels."""
    levels = texture.num_levels > 1 and sampler.mipmap_filter_mode is not FilterMode.POINT
    return sampler.kernel.blends or levels or sampler.max_anisotropy > 1


def own_dtype(texture: Texture | SizedTexture, sampler: Sampler) -> np.dtype:
    """The dtype of a read, before the caller asks for another one."""
    return read_dtype(texture.dtype, sampler.decoding, blends(texture, sampler))


def in_arithmetic(
    sampler: Sampler, run: Callable[..., jax.Array], *, rematerialized: bool = False
) -> Callable[..., jax.Array]:
    """``run(arithmetic, ...)`` in the sampler's arithmetic, with the derivatives of float arithmetic.

    Args:
        rematerialized: whether reverse mode computes the float read again, and keeps its arguments alone.
    """
    in_float = functools.partial(run, FLOAT)
    if rematerialized:
        in_float = jax.checkpoint(in_float)
    if sampler.arithmetic is not Arithmetic.HARDWARE:
        return in_float
    from .._hardware import HARDWARE  # loaded only for reads in this arithmetic

    return functools.partial(straight_through, functools.partial(run, HARDWARE), in_float)


# The read of `sample`


@typed_jit("sampler", "dtype")
def sample(
    texture: Texture,
    arguments: ReadArguments,
    key: jax.Array | None = None,
    *,
    sampler: Sampler,
    dtype: np.dtype,
) -> jax.Array:
    """The read that `sampler` asks for, S + (C,) of `dtype`; with a key, of one tap that is drawn by its weight."""
    # Channels of complex numbers are read as two real ones each.
    if is_complex(texture.dtype):
        return by_parts(sample, texture, arguments, key, sampler=sampler, dtype=dtype)

    # The dtypes: of all coordinates and knots together, and of sums. Integers that are not blended have no derivatives.
    knots = jax.tree.leaves(texture.knots)
    arguments = arguments.as_operands(beside=[as_float(a).dtype for a in knots])
    sums, differentiable = numbers_of(
        texture, sampler.decoding, arguments.coords, blends=is_blended(texture.dtype) and blends(texture, sampler)
    )
    if not differentiable:
        arguments = jax.lax.stop_gradient(arguments)
    rounded = rounded_dtype(dtype, sums)
    number = None if key is None else jax.random.uniform(key, arguments.shape, arguments.coords[0].dtype)

    def run(arithmetic: ReadArithmetic, texture: Texture, arguments: ReadArguments) -> jax.Array:
        # Among knots, a filter of one or two taps reads at positions; a longer one has weights of its own.
        if knots and sampler.kernel.num_taps > 2:
            from .knots import cubic_read  # loaded only for textures with knots

            # Reverse mode computes weights and reads again, and keeps texels, knots and coordinates.
            of_weights = functools.partial(cubic_read, sampler=sampler, dtype=rounded)
            return jax.checkpoint(of_weights)(texture, arguments)
        arguments = at_positions(texture, arguments, sampler) if knots else arguments
        # With a key, one tap is drawn; otherwise the read is planned and carried out.
        if number is not None:
            return drawn_read(texture, arguments, number, sampler, sums, rounded)
        return arithmetic.read(texture, plan_of_call(arithmetic, Layout.of(texture), arguments, sampler, rounded))

    # Of a footprint, reverse mode keeps the sides alone.
    out = in_arithmetic(sampler, run, rematerialized=arguments.ddx is not None)(texture, arguments)
    # What has no effect, such as a level of a texture of one level, counts for the shape of the samples.
    return jnp.broadcast_to(out, (*arguments.shape, texture.num_channels)).astype(dtype)


def drawn_read(
    texture: Texture, arguments: ReadArguments, number: jax.Array, sampler: Sampler, sums: np.dtype, dtype: np.dtype
) -> jax.Array:
    """The read of one drawn tap, or of two; see `jaxtex._engine.walk.drawn_taps`."""
    expected = plan_of_call(FLOAT, Layout.of(texture), arguments, sampler, dtype)
    spec, operands = expected.spec, (number, *expected.operands)
    taps = DrawnTaps(spec.axes, spec.grid)

    def read(taps: DrawnTaps, dtype: np.dtype) -> jax.Array:
        mean = spec.with_dtype(dtype)
        of_tap = Read(mean, operands).replace(axes=taps.drawn_axes, grid=taps, expected=mean)
        return FLOAT.read(texture, of_tap)

    # Positive weights sum to one, so one tap is drawn by its weight.
    if not taps.signed:
        return read(taps, dtype)
    # Otherwise one is drawn of each sign. With n of `negative_share`, the mean is (1 + n) above - n below.
    above, below = read(taps, sums), read(taps._replace(below_zero=True), sums)
    share = jax.lax.stop_gradient(taps.negative_share(*operands))[..., None].astype(sums)
    # Without a negative weight the second texel counts as zero, also where it is NaN.
    return jnp.where(share > 0, above + share * (above - below), above).astype(dtype)


def plan_of_call(
    arithmetic: ReadArithmetic,
    layout: Layout,
    arguments: ReadArguments | ResolvedLevel,
    sampler: Sampler,
    dtype: np.dtype,
) -> Read:
    """The read of a call, or the weighted mean of those along its footprint.

    Args:
        arguments: those of the call, or the level that they resolve to.
    """
    # A footprint becomes a level of detail, and a number of reads along its longest side.
    is_resolved = isinstance(arguments, ResolvedLevel)
    resolved = arguments if is_resolved else arithmetic.resolve_level(layout, arguments, sampler)
    # The axes of the texture get their operands.
    read = plan_of_level(layout, arithmetic.with_face(layout, resolved), sampler, dtype)
    if resolved.side is None:
        return read
    # The grid of several reads finds the coordinates of each; the resolved level is its operands.
    operands, structure = jax.tree.flatten(resolved._replace(face_coords=None, sizes=()))
    grid = AlongFootprint(arithmetic.most_reads(sampler), arithmetic, layout, sampler, structure)
    return read.replace(grid=grid)._replace(operands=tuple(operands)).with_given(resolved.sizes)


@dataclasses.dataclass(frozen=True)
class AlongFootprint(SeveralReads):
    """The grid of several reads along a footprint.

    Attributes:
        structure: the structure of the resolved level, whose arrays are the operands.
    """

    most: int
    arithmetic: ReadArithmetic
    layout: Layout
    sampler: Sampler
    structure: Any

    def count(self, *operands: jax.Array) -> jax.Array:
        resolved: ResolvedLevel = jax.tree.unflatten(self.structure, operands)
        assert resolved.num_reads is not None
        return resolved.num_reads

    def read(self, number: jax.Array, *operands: jax.Array) -> tuple[Coords, jax.Array]:
        resolved: ResolvedLevel = jax.tree.unflatten(self.structure, operands)
        assert resolved.side is not None
        dtype = resolved.side[0].dtype
        located, weight = self.arithmetic.along_footprint(self.layout, resolved, number.astype(dtype))
        spec, operands = plan_of_level(self.layout, located, self.sampler, dtype)
        assert not isinstance(spec.grid, SeveralReads)
        return spec.grid(*operands), weight


def sample_grid(
    texture: Texture | SizedTexture,
    function: Callable[..., Arrays],
    operands: Sequence[Operand],
    sampler: Sampler,
    *,
    as_numbers: bool = False,
    affine_axes: int = 0,
    materialized: bool = True,
    planar: bool = False,
    nearest_axes: Sequence[int] = (),
) -> jax.Array:
    """`sample` at coordinates that the kernels of the read and of its gradients compute.

    Args:
        texture: of one level, without layers and faces.
        function: maps `operands` to a tuple of coordinates, x first; elementwise, static and hashed.
        operands: floating arrays of one dtype and one rank, whose shapes broadcast to S; or with one more axis, of
            numbers that `function` takes one by one.
        as_numbers: whether integers that are read as elements are blended, in float arithmetic.
        affine_axes: the number of leading operands that are the centers of pixels along x, y (and z), one apart, if
            `function` is affine in them. The adjoint is then a gather, which is faster.
        materialized, planar: as in `ReadSpec`.
        nearest_axes: the numbers of axes, slowest first, that are read at the nearest texel, whatever the filter.
    """
    # The dtypes of sums and of the result.
    blended = as_numbers or (is_blended(texture.dtype) and blends(texture, sampler))
    sums, differentiable = numbers_of(texture, sampler.decoding, split(operands)[0], blends=blended)
    dtype = sums if as_numbers else rounded_dtype(own_dtype(texture, sampler), sums)
    # The read keeps the function, and its operands in place of coordinates.
    read = plan_of_grid(Layout.of(texture), function, operands, sampler, dtype, affine_axes, sizes_of(texture))
    read = read.replace(materialized=materialized, planar=planar)
    if nearest_axes:
        axes = (a._replace(kernel=POINT) if k in nearest_axes else a for k, a in enumerate(read.spec.axes))
        read = read.replace(axes=tuple(axes))
    if not differentiable:
        read = read._replace(operands=jax.lax.stop_gradient(read.operands))

    def run(arithmetic: ReadArithmetic, texture: Texture | SizedTexture, operands: tuple[jax.Array, ...]) -> jax.Array:
        return arithmetic.read(texture, read._replace(operands=operands))

    out = in_arithmetic(sampler, run)(texture, read.operands)
    return out if as_numbers else out.astype(own_dtype(texture, sampler))


def sample_labels(
    labels: jax.Array,
    color: jax.Array,
    function: Callable[..., Arrays],
    operands: Sequence[Operand],
    sampler: Sampler,
    *,
    kind: TextureKind,
    affine_axes: int = 0,
) -> jax.Array:
    """The label with the greatest total weight of taps, channel by channel; see `sample_grid`.

    Args:
        labels: sizes + (C,), integers of any width.
        color: (C,) of the dtype of `labels`, the label of a tap outside.
        sampler: with a filter of positive weights. A filter of one tap returns its label.
    """
    operands = jax.lax.stop_gradient(tuple(operands))
    read = plan_of_grid(Layout(kind, labels.shape), function, operands, sampler, labels.dtype, affine_axes)
    read = read.replace(combination=Combination.VOTE, decoding=Decoding.ELEMENT, deterministic=False)
    outside = color if any(axis.address.has_outside for axis in read.spec.axes) else None
    return read_where_placed(READ, labels, outside, read)


@typed_jit("sampler")
def positions(texture: Texture, arguments: ReadArguments, *, sampler: Sampler) -> tuple[jax.Array, ...]:
    """The coordinates of a read in texels, x first."""
    arguments = arguments.as_operands(beside=[as_float(a).dtype for a in jax.tree.leaves(texture.knots)])
    arguments = at_positions(texture, arguments, sampler)
    scaled = zip(arguments.coords, Layout.of(texture).axes(sampler)[::-1])
    return tuple(x * axis.known_size if axis.normalized else x for x, axis in scaled)


def at_positions(texture: Texture, arguments: ReadArguments, sampler: Sampler) -> ReadArguments:
    """The arguments of a read, with positions in place of the coordinates of axes with knots."""
    if texture.knots is None:
        return arguments
    from . import knots  # loaded only for textures with knots

    return knots.at_positions(texture, arguments, sampler)


# Single texels


@typed_jit("level")
def fetch(texture: Texture, arguments: ReadArguments, *, level: int) -> jax.Array:
    """The texels at indices, as they are stored, with zero outside."""
    if is_complex(texture.dtype):
        return by_parts(fetch, texture, arguments, level=level)
    # Indices outside read zero; a layer outside is the last one.
    read = plan_of_texels(Layout.of(texture), arguments.as_operands(integer=True), level, BORDER, LAST, texture.dtype)
    return read_where_placed(READ, texture.texels, None, read, texture.cut)


@typed_jit("sampler", "component", "dtype")
def gather(
    texture: Texture, arguments: ReadArguments, *, sampler: Sampler, component: int, dtype: np.dtype
) -> jax.Array:
    """Four reads of one tap each, of one channel."""
    if is_complex(texture.dtype):
        part = functools.partial(gather, in_parts(texture), arguments, sampler=sampler, dtype=real_dtype(dtype))
        return jax.lax.complex(part(component=2 * component), part(component=2 * component + 1))
    arguments = at_positions(texture, jax.lax.stop_gradient(arguments.as_operands()), sampler)
    sums, _ = numbers_of(texture, sampler.decoding, arguments.coords, blends=False)
    run = functools.partial(four_texels, sampler=sampler, component=component, dtype=rounded_dtype(dtype, sums))
    return in_arithmetic(sampler, run)(texture, arguments).astype(dtype)


def four_texels(
    arithmetic: ReadArithmetic,
    texture: Texture,
    arguments: ReadArguments,
    *,
    sampler: Sampler,
    component: int,
    dtype: np.dtype,
) -> jax.Array:
    """The four texels of a gather in one arithmetic, S + (4,)."""
    # sRGB encodes colors; alpha is linear.
    if component >= num_colors(texture.num_channels):
        sampler = dataclasses.replace(sampler, srgb=False)
    # One channel of the texels, and of a border color that has channels.
    chosen, color = slice(component, component + 1), texture.border_color
    color = color[chosen] if color is not None and color.ndim else color
    texture = dataclasses.replace(texture, texels=texture.texels[..., chosen], border_color=color)
    # The plan of one read, whose filters along y and x change from texel to texel.
    layout, (low, high) = Layout.of(texture), LINEAR_TAPS
    resolved = arithmetic.with_face(layout, arithmetic.resolve_level(layout, arguments, sampler))
    read = plan_of_level(layout, resolved, sampler, dtype).replace(combination=Combination.BLEND)
    *others, along_y, along_x = read.spec.axes
    # Each tap of a linear filter is a filter of its own. The order is counter-clockwise from the lower left.
    texels: list[jax.Array] = []
    for y, x in ((high, low), (high, high), (low, high), (low, low)):
        axes = (*others, along_y._replace(kernel=y), along_x._replace(kernel=x))
        texels.append(arithmetic.read_texel(texture, read.replace(axes=axes))[..., 0])
    return jnp.stack(texels, axis=-1)


def in_heads(texture: Texture, num_heads: int) -> Texture:
    """A texture with its channels divided among heads, a further axis behind the others."""
    *sizes, channels = texture.texels.shape
    shape = (*sizes, num_heads, channels // num_heads)
    if texture.level_shapes:
        shape = (sizes[0] * num_heads, channels // num_heads)
    return dataclasses.replace(texture, texels=reshaped(texture.texels, shape))


# The adjoint


@typed_jit("layout", "sampler", "dtype", "sharding")
def splat(
    values: jax.Array,
    arguments: ReadArguments,
    *,
    layout: Layout,
    sampler: Sampler,
    dtype: np.dtype,
    sharding: jax.NamedSharding | None = None,
) -> jax.Array:
    """The texels of a splat, which carry the sharding `sharding`; of parts, as many channels as values have."""
    # Complex values are real ones of twice as many channels, whose number the layout takes from the values.
    if is_complex(values.dtype):
        return by_parts(splat, values, arguments, layout=layout, sampler=sampler, dtype=dtype, sharding=sharding)
    arguments, layout = arguments.as_operands(), layout._replace(shape=(*layout.shape[:-1], values.shape[-1]))
    sums = sum_dtype(values.dtype, dtype, *(c.dtype for c in arguments.coords))
    resolved, values = FLOAT.resolve_level(layout, arguments, sampler), values.astype(sums)
    # The reads along a footprint are one more axis of samples in front, each with its share of the values.
    if resolved.num_reads is not None:
        number = jnp.arange(1, sampler.max_anisotropy + 1, dtype=resolved.num_reads.dtype)
        number = number.reshape(-1, *[1] * resolved.num_reads.ndim)
        several: Any = jax.tree.map(lambda a: a[None], resolved)
        resolved, weight = FLOAT.along_footprint(layout, several, number)
        values = values[None] * weight[..., None].astype(sums)
    # What is added to texels is no code, whatever a read would decode.
    read = plan_of_level(layout, resolved, sampler, dtype).replace(decoding=Decoding.ELEMENT)
    return splat_where_placed(values, read, sharding)
