"""Reads of textures and their adjoint: `sample`, `fetch`, `gather` and `splat`."""

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike, DTypeLike

from ._checks import hints
from ._checks.calls import public
from ._checks.numbers import as_integer, on_device
from ._checks.words import listing
from ._engine.compute.texel_value import read_dtype
from ._engine.describe.plan import Layout
from ._reads import calls
from ._reads.arguments import (
    as_sharding,
    check_coords,
    check_draws,
    check_dtype,
    check_level,
    check_read_arguments,
    check_texels,
    check_texture,
    check_third_side,
    converted,
)
from ._reads.valid import ValidLike, check_leaves_out, check_valid, sample_valid
from .modes import Arithmetic, FilterMode, TextureKind, choose
from .sampler import Sampler, check_adjoint, check_modes, check_sampler
from .texture import Texture, chain_shapes, check_shape

__all__ = ["fetch", "gather", "positions", "sample", "splat"]
__dir__ = listing(__all__)

# One array for each axis, x first; the last form is of tuples whose length is not known to type checkers.
Coords = tuple[ArrayLike] | tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike] | tuple[ArrayLike, ...]
DEFAULT_SAMPLER = Sampler()
KindLike = TextureKind | Literal["1d", "2d", "3d", "1d_layered", "2d_layered"] | Literal["cubemap", "cubemap_layered"]


@public
def sample(
    texture: Texture,
    coords: Coords,
    sampler: Sampler | None = None,
    *,
    layer: ArrayLike | None = None,
    lod: ArrayLike | None = None,
    ddx: Coords | None = None,
    ddy: Coords | None = None,
    ddz: Coords | None = None,
    key: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    valid: ValidLike | None = None,
    min_valid: float = 0.0,
    fill: ArrayLike | None = None,
) -> jax.Array:
    """Reads a filtered texture at any number of positions.

    ``sample(T, c) = sum_k w_k(c) T[i_k(c)]``: the filter mode gives the taps k around the position and their weights w.
    The address mode gives the texel i that each tap reads. Outside `jax.jit`, a call is one compiled program.

    Args:
        texture: a `Texture`.
        coords: a tuple of arrays, ``(x,)``, ``(x, y)`` or ``(x, y, z)``, one for each filtered axis of the texture,
            that broadcast to a common shape S. For a cubemap, a direction ``(x, y, z)`` of any length. With
            ``sampler.normalized_coords`` a texture spans [0, 1], and the center of texel i is at ``(i + 0.5) / N``.
            Otherwise it spans [0, N], and the center is at ``i + 0.5``. Coordinates outside follow the address mode.
            NaN acts as 0. Infinite coordinates act as the far edge under clamp and border, and as 0 under the modes
            that repeat. So do normalized coordinates of 2^24 and more (wrap and mirror), and positions of 2^30 texels
            and more. Integer, weakly typed and 16-bit coordinates become float32. Pass x and y as separate arrays: two
            arrays are read much faster than one interleaved array. On an axis with knots a coordinate has their unit;
            NaN, and under the modes that repeat an infinity, act as the edge before the first texel.
        sampler: how to read, a `Sampler`. If it sets no address mode, clamp is used. ``None`` is ``Sampler()``, or the
            sampler that the texture is bound with (`jaxtex.unit.bind`).
        layer: integers that broadcast with S, the layer of a layered texture. A negative or too large layer reads the
            last one.
        lod: the level of detail, numbers that broadcast with S: a level of the mip chain, where 0 is the finest. The
            sampler's bias is added; then the bounds of the sampler and of the chain apply. NaN acts as 0. Without `lod`
            and footprint the finest level is read, without bias.
        ddx, ddy: the footprint of a sample, in place of `lod`: tuples of arrays like `coords`, the derivatives of the
            coordinates along x and y of the output, in the units of `coords`; `jaxtex.footprint` computes them.
            The level of detail is the base-2 logarithm of the longer side in texels. With ``sampler.max_anisotropy``
            above 1, several reads lie along the longer side, in the level of the shorter. NaN acts as 0. An infinite
            derivative selects the coarsest level, a zero derivative the finest.
        ddz: for a 3D texture, the third side of the footprint: the derivatives along z of the output.
        key: a random key of `jax.random`. With it the read is stochastic: each sample reads one texel, drawn among the
            levels, the reads along a footprint and the taps, with its weight as the probability. With a filter that has
            negative weights (cubic, mitchell, lanczos2, lanczos3) each sample reads two texels: one among the taps of
            positive weight, and one among those of negative weight. The expectation is the read without a key. A key
            excludes hardware arithmetic, and ``limit="taps"``, under which the read is no mean of texels.
        dtype: the dtype of the result: a floating dtype, or one that holds all texels; complex for complex texels. The
            default is the texture's dtype; float32 with ``read_mode="normalized_float"``, and for bool texels that a
            filter blends.
        valid: which texels count: an array of bool in the shape of the texels, or without their last axis; or
            ``"finite"``, those whose channels are all finite, the only choice for a mip chain. The other texels have no
            weight, and the weights of the valid ones are divided by their sum, the valid share: ``sum_k w_k m_k T_k /
            sum_k w_k m_k`` for the mask m. A border color is valid where it is finite. Hardware arithmetic, ``limit``,
            a key, and textures that are bound to a texture unit take no `valid`.
        min_valid: the least valid share that counts, static, from 0 to 1. It is never below 2^-10, and 1/4 for filters
            with negative weights, whose sums nearly cancel where few taps are valid.
        fill: the result below `min_valid`, a number or (C,). The default is NaN, and 0 for integers.

    Returns:
        S + (C,). Weights and sums are computed in float32, or in float64 if texels or coordinates are float64, or
        texels complex128. The result is rounded once. Real and imaginary parts are read separately.

    Gradients: of any order, in forward and reverse mode, with respect to floating or complex texels, the border color,
        the coordinates, the knots, `lod`, `ddx`, `ddy` and `ddz`. Along one coordinate, derivatives vanish from the
        second order on under linear, and from the fourth on under cubic. At a kink (a texel's center under linear) the
        slope is that on the right, towards the next texel. It is zero for the point filter, for coordinates that act as
        0 (NaN), and under clamp where all taps read the same texel. Integer texels have no gradient; with
        ``normalized_float`` the coordinates still have one. Reverse mode stores only texels and coordinates. Gradients
        of float16 and bfloat16 texels are summed in float32. In hardware arithmetic the derivatives are those of the
        float read at the same position. With a key, the gradients with respect to texels and border color go to the
        texels that were drawn; their expectation is the gradient of the filtered read. All other gradients are those of
        the filtered read, which is computed for them. With `valid`, texels that are not valid get zero, and results
        that are `fill` pass nothing on.

    Precision: fractions of a position are float32, not the 8 bits of a texture unit. A point read returns texels bit
        for bit. With ``arithmetic="hardware"`` a read without anisotropy returns the bits of an NVIDIA H200's texture
        unit; see `docs/arithmetic.md`. Infinite and NaN texels among the taps follow IEEE 754, also where their weight
        is zero. Subnormal numbers may count as zero.

    Raises:
        ValueError: if coordinates, layer, footprint, sampler or dtype do not fit the texture.
        TypeError: if an argument has the wrong type, such as one stacked array of coordinates, or an array in place of
            a texture.

    Source: CUDA C++ Programming Guide, "Texture Fetching"; with `valid`, H. Knutsson and C.-F. Westin, "Normalized and
        Differential Convolution", 1993; with a key, M. Pharr, B. Wronski, M. Salvi and M. Fajardo,
        "Filtering After Shading With Stochastic Texture Filtering", 2024.

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> ramp = jt.texture1d(jnp.array([[10.0], [20.0], [30.0], [40.0]]))
        >>> jt.sample(ramp, (jnp.array([0.0, 0.25, 0.5]),), jt.Sampler(address_mode="wrap"))[:, 0]
        Array([25., 15., 25.], dtype=float32)
        >>> jax.grad(lambda x: jt.sample(ramp, (x,))[0])(0.4)
        Array(40., dtype=float32, weak_type=True)
    """
    check_texture("sample", texture, coords, takes_knots=True, sampler=sampler)
    sampler = sampler or texture.sampler or DEFAULT_SAMPLER
    check_sampler("sample", texture.kind, texture.dtype, texture.num_levels, texture.shape[-2], sampler)
    check_on_knots("sample", texture, sampler, ddx, key)
    arguments = check_read_arguments("sample", texture.kind, coords, layer, lod, ddx, ddy, ddz)
    check_third_side("sample", ddz, sampler)
    drawn_by: Any = check_draws("sample", key, sampler)
    which = check_valid("sample", valid, min_valid, fill, texture, texture.num_channels, "texture")
    result = check_dtype("sample", dtype, calls.own_dtype(texture, sampler))
    if hints.is_on():
        mention_smoothing("sample", sampler)
        if sampler.normalized_coords and not texture.kind.is_cube:
            hints.mention_far_coords("sample", arguments.as_operands().coords, texture.knots)
    if which is not None:
        check_leaves_out("sample", texture, sampler, key, which)
        return sample_valid(texture, arguments, which, sampler=sampler, dtype=result)
    if drawn_by is None and texture.sampler == sampler:
        from ._reads import unit  # loaded for textures that are bound to a texture unit

        return unit.sample(cast(unit.UnitTexture, texture), arguments, dtype=result)
    return calls.sample(texture, arguments, drawn_by, sampler=sampler, dtype=result)


@public
def fetch(texture: Texture, indices: Coords, *, layer: ArrayLike | None = None, level: int = 0) -> jax.Array:
    """Reads single texels by their integer index, without a filter or an address mode. Outside, it reads zero.

    Args:
        texture: a `Texture`, not a cubemap.
        indices: a tuple of integer arrays, ``(x,)``, ``(x, y)`` or ``(x, y, z)``, that broadcast to a common shape S.
            An index below 0 or past the end reads zero, in every channel.
        layer: integers that broadcast with S, the layer of a layered texture. A negative or too large layer reads the
            last one.
        level: the mip level, a Python integer.

    Returns:
        S + (C,), in the texture's dtype, the texels as they are stored.

    Gradients: of any order, in forward and reverse mode, with respect to floating texels. Indices have no gradient.

    Raises:
        ValueError: if indices, layer or level do not fit the texture.
        TypeError: if `texture` is not a `Texture`, or indices or layer are not integers.

    Source: `tex1Dfetch` of the CUDA C++ Programming Guide, which ignores address modes and returns 0 outside.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> jt.fetch(jt.texture1d(np.array([[7], [8], [9]])), (np.array([-1, 0, 2, 3]),))[:, 0]
        Array([0, 7, 9, 0], dtype=int32)
    """
    check_texture("fetch", texture, indices, takes_knots=True)
    if texture.kind.is_cube:
        raise ValueError("fetch: texture is a cubemap, which has no integer coordinates; read it with sample.")
    level = check_level("fetch", texture, level)
    arguments = check_texels("fetch", texture.kind, "indices", indices, layer)
    return calls.fetch(texture, arguments, level=level)


@public
def gather(
    texture: Texture,
    coords: tuple[ArrayLike, ArrayLike],
    sampler: Sampler | None = None,
    *,
    component: int = 0,
) -> jax.Array:
    """Reads one channel of the four texels that a linear read would blend, unfiltered.

    Args:
        texture: a 2D `Texture`.
        coords: ``(x, y)``, as in `sample`, broadcasting to S.
        sampler: address modes, read mode and coordinate units are used; the filter mode is not. ``None`` is as in
            `sample`.
        component: the channel, a Python integer.

    Returns:
        S + (4,): with x0, y0 the lower tap on each axis and x1, y1 the next, the texels at (x0, y1), (x1, y1),
        (x1, y0), (x0, y0): counter-clockwise from the lower left, as y points down. The dtype is that of a point read.

    Gradients: of any order, in forward and reverse mode, with respect to floating texels and the border color. Those
        with respect to coordinates are zero.

    Raises:
        ValueError: if the texture is not 2D, or `component` is not one of its channels.
        TypeError: if `texture` or `sampler` has the wrong type.

    Source: `tex2Dgather` of the CUDA C++ Programming Guide; the order is that of the PTX instruction `tld4`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> texture = jt.texture2d(10 * np.arange(3)[:, None, None] + np.arange(3)[:, None])
        >>> jt.gather(texture, (1.0, 1.0), jt.Sampler(normalized_coords=False))
        Array([10, 11,  1,  0], dtype=int32)
    """
    check_texture("gather", texture, coords, takes_knots=True, sampler=sampler)
    sampler = sampler or texture.sampler or DEFAULT_SAMPLER
    if texture.kind is not TextureKind.TEXTURE2D:
        raise ValueError(f"gather: texture is of kind {texture.kind.value!r}, expected a texture2d.")
    component = as_integer("gather", "component", component, 0, texture.num_channels - 1)
    unfiltered = dataclasses.replace(sampler, filter_mode="point")
    check_sampler("gather", texture.kind, texture.dtype, 1, texture.shape[-2], unfiltered)
    check_on_knots("gather", texture, unfiltered)
    arguments = check_read_arguments("gather", texture.kind, coords, None)
    result = read_dtype(texture.dtype, sampler.decoding, blends=False)
    if texture.sampler == sampler:
        from ._reads import unit

        return unit.gather(cast(unit.UnitTexture, texture), arguments, component=component, dtype=result)
    return calls.gather(texture, arguments, sampler=sampler, component=component, dtype=result)


@public
def positions(texture: Texture, coords: Coords, sampler: Sampler = DEFAULT_SAMPLER) -> tuple[jax.Array, ...]:
    """Returns the positions of a read in texels, from coordinates and knots.

    Pass them, with ``Sampler(normalized_coords=False)``, to functions that take no knots: `sample_with_derivatives`,
    `nn.sample_weighted`, `splat`, and reads of mip chains.

    Args:
        texture: a `Texture`, not a cubemap; only its sizes and its knots are used.
        coords: a tuple of arrays, as in `sample`.
        sampler: address modes and coordinate units are used. On an axis with knots a mode that repeats brings the
            coordinate into one period, clamp brings it between the first and the last knot, and border near them.

    Returns:
        A tuple of arrays, x first, each of the shape of its coordinate: positions in texels; the center of texel i is
        at i + 0.5. Between two knots a position is linear in the coordinate.

    Gradients: of any order, in forward and reverse mode, with respect to the coordinates and the knots. At a knot the
        slope is that towards the next texel.

    Raises:
        ValueError: if coordinates or sampler do not fit the texture.
        TypeError: if an argument has the wrong type.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> levels = jt.texture1d(np.zeros((4, 1)), knots=(np.array([1000.0, 850.0, 500.0, 200.0]),))
        >>> jt.positions(levels, (np.array([925.0, 500.0, 100.0]),))
        (Array([1. , 2.5, 3.5], dtype=float32),)
    """
    check_texture("positions", texture, coords, takes_knots=True)
    if texture.kind.is_cube:
        raise ValueError("positions: texture is a cubemap, which is read by directions; read it with sample.")
    check_modes("positions", sampler, texture.kind.texel_ndim, texture.shape[-2])
    check_on_knots("positions", texture, dataclasses.replace(sampler, filter_mode="linear"))
    arguments = check_read_arguments("positions", texture.kind, coords, 0 if texture.kind.layered else None)
    return calls.positions(texture, arguments, sampler=sampler)


@public
def splat(
    values: ArrayLike,
    coords: Coords,
    shape: Sequence[int],
    sampler: Sampler = DEFAULT_SAMPLER,
    *,
    kind: KindLike | None = None,
    layer: ArrayLike | None = None,
    lod: ArrayLike | None = None,
    ddx: Coords | None = None,
    ddy: Coords | None = None,
    ddz: Coords | None = None,
    dtype: DTypeLike | None = None,
    out_sharding: PartitionSpec | NamedSharding | None = None,
) -> Texture:
    """Spreads values over the texels around each position: the adjoint of `sample` with respect to texels.

    ``splat(v, c)[i] = sum_k w_k(c) v`` over the taps that read texel i. Up to rounding, for all T and v and every
    sampler that `splat` takes (hardware arithmetic has no adjoint),
    ``(sample(T, c) * v).sum() == (T * splat(v, c).texels).sum()``. Use it to deposit particles on a grid, or for
    forward warps.

    Args:
        values: S + (C,), floating or complex, where S is the shape that `coords` and `layer` broadcast to.
        coords: a tuple of arrays, as in `sample`.
        shape: the shape of the texels, channels included, such as ``(H, W, C)``.
        sampler: how `sample` would read. Weight that falls on the border under ``address_mode="border"`` is dropped.
        kind: the kind of texture, such as ``"2d"``. The default follows from the number of coordinates and the presence
            of `layer`.
        layer: integers, as in `sample`, for a layered texture.
        lod, ddx, ddy, ddz: as in `sample`, for a mip chain. With one of them the texture has all its levels.
        dtype: the dtype of the texels; the default is that of `values`. Sums are computed in float32, or in float64 if
            values or coordinates are float64.
        out_sharding: how the texels are sharded over a mesh with explicit axes, along one axis. Values travel to the
            device that stores their texels, or neighbors exchange a halo; see `jaxtex.sharded`.

    Returns:
        A `Texture` of `shape`.

    Gradients: of any order, in forward and reverse mode, with respect to `values` and the coordinates; the conventions
        are those of `sample`.

    Precision: on a GPU the order of additions, and so the last bits, may differ from run to run, unless
        ``sampler.deterministic``.

    Raises:
        ValueError: if shapes do not fit, or `sampler` cannot read floating texels.
        TypeError: if values are not floating or complex, or coords are one stacked array.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> jt.splat(np.ones((1, 1)), (np.array([0.5]),), (4, 1)).texels[:, 0]
        Array([0. , 0.5, 0.5, 0. ], dtype=float32)
    """
    check_coords("splat", coords)
    texture_kind = infer_kind(kind, len(coords), layer)
    sizes = check_shape("splat", texture_kind, shape, "C")
    given = converted("splat", "values", values)
    if not jnp.issubdtype(given.dtype, jnp.inexact):
        raise TypeError(
            f"splat: values has dtype {given.dtype}, expected floating or complex numbers; use values.astype."
        )
    values = on_device(given)
    arguments = check_read_arguments("splat", texture_kind, coords, layer, lod, ddx, ddy, ddz)
    common = arguments.shape
    if values.shape != (*common, sizes[-1]):
        raise ValueError(
            f"splat: values has shape {values.shape}, expected {(*common, sizes[-1])}: the shape {common} that the "
            f"coordinates broadcast to, and the {sizes[-1]} channels of shape."
        )
    check_adjoint("splat", sampler)
    result = check_dtype("splat", dtype, np.dtype(values.dtype))
    chain = None if lod is None and ddx is None else tuple(chain_shapes(texture_kind, sizes, None, "splat"))
    chain = None if chain is not None and len(chain) == 1 else chain
    layout = Layout(texture_kind, sizes, len(chain or (sizes,)))
    check_sampler("splat", texture_kind, result, layout.num_levels, sizes[-2], sampler)
    if chain is not None and out_sharding is not None:
        raise ValueError(
            "splat: out_sharding is given with a level of detail, but splat cannot shard a mip chain; leave "
            "out_sharding out, or splat into one level."
        )
    sharding = None if out_sharding is None else as_sharding("splat", out_sharding)
    texels = calls.splat(values, arguments, layout=layout, sampler=sampler, dtype=result, sharding=sharding)
    return Texture(texels, None, texture_kind, chain)


def infer_kind(kind: Any, ndim: int, layer: Any) -> TextureKind:
    """The kind of texture that is read with `ndim` coordinates, with or without a layer."""
    if kind is not None:
        return choose("splat", "kind", kind, TextureKind)
    for option in TextureKind:
        if option.ndim == ndim and option.layered == (layer is not None) and not option.is_cube:
            return option
    layered = " and a layer" if layer is not None else ""
    raise ValueError(f"splat: coords has {ndim} arrays{layered}, which fits no kind of texture; pass kind.")


# Checks


def check_on_knots(name: str, texture: Texture, sampler: Sampler, ddx: object = None, key: object = None) -> None:
    """Checks that the filter supports knots, and that these include edges if an address mode needs them."""
    if texture.knots is None:
        return
    if not sampler.kernel.on_knots:
        raise ValueError(
            f"{name}: filter_mode={str(sampler.filter)!r} is given for a texture with knots, whose texels are not "
            f"evenly spaced; use 'point', 'linear' or 'lagrange'."
        )
    for refused, argument, reason in (
        (sampler.arithmetic is Arithmetic.HARDWARE, "arithmetic='hardware'", "no texture unit has knots"),
        (ddx is not None, "ddx", "a footprint is in texels"),
        (key is not None and sampler.kernel.num_taps > 2, "key", "only the point and the linear filter draw there"),
    ):
        if refused:
            raise ValueError(f"{name}: {argument} is given for a texture with knots, and {reason}; leave it out.")
    sizes, rules = texture.shape[-1 - texture.kind.texel_ndim : -1][::-1], sampler.address_rules(len(texture.knots))
    for axis, knots, size, rule in zip("xyz", texture.knots, sizes, rules):
        if knots is not None and knots.shape[-1] == size and not rule.saturates:
            raise ValueError(
                f"{name}: the address mode of {axis} is {rule.name!r}, which continues the axis at its edges, and the "
                f"{size} knots of {axis} have none; pass {size + 2} knots, the first and the last of which are edges."
            )
    if hints.is_on():
        hints.mention_disorder(name, texture.knots)


def mention_smoothing(name: str, sampler: Sampler) -> None:
    """Warns of a read by a B-spline, which smooths a texture of samples; a texture of coefficients looks alike."""
    if sampler.filter_mode is FilterMode.BSPLINE and sampler.kernel.num_taps > 2:
        warnings.warn(
            f"{name}: filter_mode='bspline' smooths the texels. If they are samples that the read should pass through, "
            f"read jaxtex.spline_filter(texture, sampler) in place of the texture.",
            stacklevel=4,
        )
