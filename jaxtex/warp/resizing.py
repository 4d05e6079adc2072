"""Resizes by filters as wide as the step between output pixels, along one axis after the other."""

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from .._checks import hints
from .._checks.calls import public
from .._checks.numbers import as_array, as_float
from .._checks.words import check_word
from .._engine.api import ScaledFilter, scaled
from .._reads.complex_parts import from_parts
from .._tables.address_rules import SPHERE, WRAP, AddressRule
from .._tables.filter_kernels import POINT, FilterKernel
from .._tables.storage_formats import is_complex, sum_dtype
from ..modes import AddressMode, Arithmetic, ReadMode, ResizeFilter, choose
from ..sampler import MAX_ANISOTROPY, FilterModeLike, ResizeFilterLike, Sampler
from ..splines import circles_of_sphere
from .coordinate_functions import scaled as scaled_points
from .images import as_blended, as_numbers, check_image, check_reads, converted, parts_of_image, warp_image
from .options import AddressLike, ReadOptions, ShapeLike, contradiction, read_options, spatial_shape

AREA = ResizeFilter("area")
# Axes whose steps differ by less are filtered in the order of the axes.
STEPS_PER_OCTAVE = 8
Edges: TypeAlias = Literal["address", "renormalize"]
EDGES = ("address", "renormalize")


@public(compiled=True)
def resize(
    image: ArrayLike,
    output_shape: ShapeLike,
    sampler: Sampler | None = None,
    *,
    filter_mode: ResizeFilterLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = True,
    dtype: DTypeLike | None = None,
    edges: Edges = "address",
) -> jax.Array:
    """Resizes images: the corners of the image go to the corners of the output.

    Args:
        image: ``(..., H, W, C)``, or with an `output_shape` of three sizes ``(..., D, H, W, C)``, as in `resample`.
        output_shape: the spatial shape of the output.
        filter_mode: a `FilterMode`, as in `resample`, or ``"area"``: each output pixel is the mean over the pixels
            under it, weighted by the covered share.
        address_mode: as in `resample`, but the default is ``"clamp"``, the nearest pixel of the edge.
        antialias: whether to widen the filter where the image shrinks. Along an axis that shrinks by a factor s, the
            filter extends over s times as many pixels: the default filter, linear, becomes a triangle of 2 s pixels.
            Along an axis that grows the filter is unchanged, and an axis that keeps its size is not filtered. The point
            filter returns stored values and is never widened.
        edges: the pixels outside the image: ``"address"`` takes those of `address_mode`; with ``"renormalize"`` they
            have no weight, and the weights of the others sum to one, as in Pillow, PyTorch with ``antialias=True``,
            and `jax.image.resize`.
        sampler, border_color, dtype: as in `resample`. The sampler's mip options have no effect, and widened filters
            are always deterministic. With ``limit`` or ``arithmetic="hardware"``, an image that shrinks is read through
            a mip chain, as in the other warps.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, as in `resample`, with respect to image and border color, in which the result is linear.

    Precision: where the filter is widened, the weight of a pixel is the filter at its distance divided by s, both ends
        of the filter included, divided by the sum of all weights. Weights are computed in float64, sums in float32, or
        in float64 for a float64 image.

    Raises:
        ValueError: if shapes do not fit, or ``filter_mode="area"`` is given with ``antialias=False``, ``limit`` or
            ``arithmetic="hardware"``, or ``edges="renormalize"`` with an address mode, with one of these two options,
            or with a filter that reads nothing outside, ``"area"`` or ``"point"``.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> jt.warp.resize(np.array([[[0.0], [1.0]]]), (1, 4))[0, :, 0]
        Array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
        >>> row = np.array([0.0, 0.0, 8.0, 8.0])[None, :, None]
        >>> jt.warp.resize(row, (1, 2))[0, :, 0]
        Array([1., 7.], dtype=float32)
        >>> jt.warp.resize(row, (1, 2), filter_mode="area")[0, :, 0]
        Array([0., 8.], dtype=float32)
    """
    name = "resize"
    shape = spatial_shape(name, image, output_shape)
    pixels = as_array(image)
    check_image(name, pixels, len(shape), may_be_complex=True)
    options = resize_options(sampler, filter_mode, address_mode, border_color, antialias, dtype)
    check_reads(name, options, len(shape), pixels.dtype, pixels.shape)
    check_edges(name, edges, sampler, address_mode, options)
    if is_complex(pixels.dtype):
        image, options = parts_of_image(name, pixels, options)
        again = functools.partial(
            resize, filter_mode=filter_mode, address_mode=address_mode, antialias=antialias, edges=edges
        )
        return from_parts(again(image, output_shape, sampler, border_color=options.border_color))
    if hints.is_on():
        hints.mention_swapped_shape(name, shape, pixels.shape)
    steps = tuple(n / m for n, m in zip(pixels.shape[-1 - len(shape) : -1], shape))
    if edges == "renormalize":
        return filtered(pixels, shape, steps, options.with_sampler(address_mode="border"), renormalized=True)
    options = options.replace(antialias=is_widened(steps, options))
    # A tap of weight zero would make NaN of an infinite texel, so an axis that keeps its size is not filtered.
    kept = tuple(axis for axis, step in enumerate(steps) if step == 1)
    if (options.antialias or len(kept) == len(steps)) and not single_read(options.sampler):
        return filtered(pixels, shape, steps, options)
    options = with_reads_along(options, steps)
    if options.sampler.arithmetic is Arithmetic.FLOAT:
        options = options.replace(kept_axes=kept)
    parameters = [jnp.full([1] * len(shape), step, sum_dtype(pixels.dtype)) for step in steps[::-1]]
    return warp_image(name, pixels, scaled_points, parameters, shape, options)


def is_widened(steps: Sequence[float], options: ReadOptions) -> bool:
    """Whether a resize takes a widened filter, and not single reads."""
    return options.area or (options.antialias and options.kernel.blends and max(steps) > 1)


def resize_options(
    sampler: Sampler | None,
    filter_mode: ResizeFilterLike | None,
    address_mode: AddressLike | None,
    border_color: ArrayLike | None,
    antialias: bool,
    dtype: DTypeLike | None,
    name: str = "resize",
) -> ReadOptions:
    """The options of a resize."""
    area = filter_mode is not None and choose(name, "filter_mode", filter_mode, ResizeFilter) is AREA
    read_filter = None if area else cast(FilterModeLike, filter_mode)
    options = read_options(name, sampler, read_filter, address_mode, border_color, antialias, dtype, AddressMode.CLAMP)
    if area:
        if sampler is not None and sampler.filter_mode is not None:
            raise ValueError(contradiction(name, "filter_mode", filter_mode, sampler.filter_mode))
        if not antialias:
            raise ValueError(
                f"{name}: filter_mode is {filter_mode!r}, the mean over the footprint of a pixel, but antialias is "
                "False; leave antialias out, or use filter_mode='point'."
            )
        if single_read(options.sampler):
            raise ValueError(
                f"{name}: filter_mode is {filter_mode!r}, the mean of many pixels, but sampler has "
                f"{single_read(options.sampler)}, an option of single reads; leave it out, or use filter_mode='linear'."
            )
    return options.replace(area=area)


def check_edges(
    name: str, edges: str, sampler: Sampler | None, address_mode: AddressLike | None, options: ReadOptions
) -> None:
    """Checks the options that contradict `edges`."""
    check_word(name, "edges", edges, EDGES)
    if edges == "address":
        return
    if address_mode is not None or (sampler is not None and sampler.address_mode is not None):
        raise ValueError(
            f"{name}: edges is {edges!r}, which ignores pixels outside, but an address mode is given; leave out edges, "
            "or address_mode and the sampler's address_mode."
        )
    if not options.kernel.blends:
        word = "area" if options.area else str(options.sampler.filter)
        raise ValueError(f"{name}: edges is {edges!r}, but the filter {word!r} reads nothing outside; leave edges out.")
    if single := single_read(options.sampler):
        raise ValueError(
            f"{name}: edges is {edges!r}, but sampler has {single}, which needs an address mode; leave out one "
            "of the two."
        )


def single_read(sampler: Sampler) -> str:
    """The option of a sampler that only single reads have; empty if there is none."""
    if sampler.arithmetic is Arithmetic.HARDWARE:
        return "arithmetic='hardware'"
    return "" if sampler.limit is None else f"limit={str(sampler.limit)!r}"


def with_reads_along(options: ReadOptions, steps: Sequence[float]) -> ReadOptions:
    """The options of a resize by single reads, with as many reads along the longest step as it needs."""
    *_, next_longest, longest = sorted(max(step, 1.0) for step in steps)
    reads = min(round(longest / next_longest), MAX_ANISOTROPY)
    if options.antialias and options.sampler.max_anisotropy == 1 and reads > 1:
        # At one level for all axes, an axis that shrinks less would be smoothed as much as the longest.
        return options.with_sampler(max_anisotropy=reads)
    return options


# Widened filters


def filtered(
    image: Any, shape: tuple[int, ...], steps: tuple[float, ...], options: ReadOptions, *, renormalized: bool = False
) -> jax.Array:
    """The image resized by a filter that is stretched by the steps of its axes, slowest axis first."""
    pixels, options = as_numbers(image, options)
    sampler, result, ndim = options.sampler, options.result, len(shape)
    sums = sum_dtype(pixels.dtype)
    halved = image.dtype == sums and any(step != 1 for step in steps)
    rules = sampler.address_rules(ndim)[::-1]
    if 0 in pixels.shape:
        return jnp.zeros((*pixels.shape[: -1 - ndim], *shape, pixels.shape[-1]), result)
    if sampler.read_mode is not ReadMode.ELEMENT:
        pixels, *_ = as_blended(jnp.asarray(pixels), sampler, antialias=True)
    values, color = jnp.asarray(pixels), None
    if options.border_color is not None and any(rule.has_outside for rule, step in zip(rules, steps) if step != 1):
        # Weights sum to one: the color, subtracted everywhere, leaves zero outside.
        color = as_float(options.border_color).astype(sums)
        color = color.reshape(*[1] * (values.ndim - 1), -1) if color.ndim else color
        values = values.astype(sums) - color
    if rules[-1] is SPHERE:
        values = values if steps[-2] == 1 else circles_of_sphere(values)
        rules = (*rules[:-2], WRAP, WRAP)
    how = {"widened": options.antialias, "renormalized": renormalized, "halved": halved}
    first = values.ndim - 1 - ndim
    filters = filters_of_axes(values.shape[first:-1], shape, steps, options.kernel, rules, **how)
    at_once = color is None and not halved and jnp.issubdtype(result, jnp.integer)
    values = scaled(values, [(first + axis, each) for axis, each in filters], result if at_once else sums)
    return converted(values if color is None else values + color, result)


def filters_of_axes(
    sizes: Sequence[int],
    shape: Sequence[int],
    steps: Sequence[float],
    kernel: FilterKernel,
    rules: Sequence[AddressRule],
    *,
    halved: bool,
    **how: bool,
) -> list[tuple[int, ScaledFilter]]:
    """The filter along each axis of an image, by the number of the axis, in the order in which they are applied.

    The axis that shrinks most is first, since it leaves the least work to the others. Axes that shrink almost alike
    keep their order, so that the order does not depend on the size of an image. The filter along an axis that keeps its
    size is the identity, whatever `kernel` is.

    Args:
        halved: whether the weights of one filter are halved, the first along an axis that does not keep its size.
        how: whether the filters are widened and renormalized.
    """
    order = sorted(range(len(shape)), key=lambda axis: -round(STEPS_PER_OCTAVE * math.log2(steps[axis])))
    kernels = [POINT if step == 1 else kernel for step in steps]
    first = next((axis for axis in order if steps[axis] != 1), order[0]) if halved else None
    axes = {axis: (kernels[axis], rules[axis], sizes[axis], shape[axis], steps[axis]) for axis in order}
    return [(axis, ScaledFilter(*each, halved=axis == first, **how)) for axis, each in axes.items()]
