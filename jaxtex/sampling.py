"""Reads and their adjoint, as callers see them: check, plan, call the engine."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _hardware
from ._arguments import (
    ReadArguments,
    as_operands,
    check_level,
    check_sampler,
    check_texels,
    check_texture,
    check_where,
    common_shape,
    infer_kind,
    stacked_coords,
)
from ._engine import plan, primitives
from ._engine.coordinates import Arrays
from ._engine.formats import read_dtype, sum_dtype
from ._engine.plan import Layout, Look, hardware_look, texel_look
from ._engine.reads import exact_read, hardware_read, layout_of, mean_read, read
from ._engine.taps import LINEAR_TAPS
from .modes import AddressMode, Arithmetic, ReadMode, TextureKind
from .sampler import Sampler
from .texture import AXIS_NAMES, Texture, chain_shapes, check_faces


def sample(
    texture: Texture,
    coords: tuple[Any, ...],
    sampler: Sampler = Sampler(),  # noqa: B008, frozen and without arrays
    *,
    layer: Any = None,
    lod: Any = None,
    ddx: Any = None,
    ddy: Any = None,
    dtype: Any = None,
) -> jax.Array:
    """Reads a filtered texture at any number of positions.

    ``sample(T, c) = sum_k w_k(c) T[i_k(c)]``: the filter mode gives the taps k around the position and their
    weights w, the address mode the texel i that each tap reads. Called outside `jax.jit` it is one compiled call.

    Args:
        texture: a `Texture`.
        coords: a tuple of arrays, ``(x,)``, ``(x, y)`` or ``(x, y, z)``, one for each filtered axis of the texture,
            that broadcast to a common shape S; for a cubemap a direction ``(x, y, z)`` of any length. With
            ``sampler.normalized_coords`` a texture spans [0, 1] and the centre of texel i is at ``(i + 0.5) / N``;
            otherwise [0, N] and ``i + 0.5``. Any value is allowed: outside is the address mode's business. NaN acts as
            0. Infinities act as the far edge under clamp and border, and as 0 under the modes that repeat, as do
            coordinates of 2^24 and more (normalised, wrap and mirror) or positions of 2^30 texels and more. Integer,
            weakly typed and 16-bit coordinates become float32.
            Keep x and y apart: two arrays are read much faster than one interleaved array.
        sampler: how to read, a `Sampler`.
        layer: integers that broadcast with S, for a layered texture: which layer to read. A negative or too large
            layer reads the last one.
        lod: the level of detail, numbers that broadcast with S: which level of a mip chain to read, 0 the finest. The
            sampler's bias is added, then its clamps and the chain's bounds hold. NaN acts as 0. Without `lod` and
            footprint the finest level is read, without bias.
        ddx, ddy: in place of `lod` the footprint of a sample: tuples of arrays like `coords`, the derivatives of the
            coordinates along x and y of the output, in the units of `coords`; `jaxtex.footprint` computes them.
            The level of detail is the logarithm of the longer side in texels; with ``sampler.max_anisotropy`` above 1
            several reads follow the longer side, in the level of the shorter. NaN acts as 0; an endless side asks
            for the coarsest level, none for the finest.
        dtype: of the result; the default is the texture's dtype, or float32 with
            ``read_mode="normalized_float"``.

    Returns:
        S + (C,). Weights and sums are taken in float32, or in float64 if texels or coordinates are; the result is
        rounded once.

    Gradients: to any order, in forward and reverse mode, to floating texels, to the border colour, to the
    coordinates, `lod`, `ddx` and `ddy`. The slope at a kink (a texel's centre under linear) is the one on its right.
    It is zero for the point filter, for coordinates that act as 0 (NaN), and under clamp where every tap reads the
    same texel. Integer texels have no gradient; with ``normalized_float`` the coordinates still do. Between the passes
    of reverse mode only texels and coordinates are kept. Into float16 and bfloat16 texels gradients are summed in
    float32. In hardware arithmetic the derivatives are those of the float read at the same place.

    Precision: float32 fractions, not the 8 bits of a texture unit; a point read returns texels bit for bit. With
    ``arithmetic="hardware"`` a read returns the bits that an NVIDIA texture unit does; see `docs/arithmetic.md`.
    Infinite and NaN texels follow IEEE within the footprint, also where their weight is zero. Subnormal numbers may
    count as zero.

    Raises:
        ValueError: if coordinates, layer, footprint or sampler do not fit the texture.
        TypeError: if an argument is of the wrong kind, such as one stacked array of coordinates.

    Source: CUDA C++ Programming Guide, "Texture Fetching".

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> ramp = jt.texture1d(jnp.array([[10.0], [20.0], [30.0], [40.0]]))
        >>> jt.sample(ramp, (jnp.array([0.0, 0.25, 0.5]),), jt.Sampler(address_mode="wrap"))[:, 0]
        Array([25., 15., 25.], dtype=float32)
        >>> jax.grad(lambda x: jt.sample(ramp, (x,))[0])(0.4)
        Array(40., dtype=float32, weak_type=True)
    """
    check_texture("sample", texture)
    where = check_where("sample", texture.kind, coords, layer, lod, ddx, ddy)
    check_sampler("sample", texture.kind, texture.dtype, texture.num_levels, sampler)
    result = np.dtype(dtype or read_dtype(texture.dtype, sampler.decoding))
    return _sample(texture, where, sampler=sampler, dtype=result)


def sample_grid(
    texture: Texture,
    function: Callable[..., Arrays],
    operands: Sequence[jax.Array],
    sampler: Sampler,
    *,
    as_numbers: bool = False,
) -> jax.Array:
    """`sample` at coordinates that are computed where they are used: in the kernel of the read, and of its gradients.

    Args:
        texture: of one level, without layers and faces.
        function: makes a tuple of coordinates, x first, of `operands`, element by element. It is static, and hashed.
        operands: floating arrays of one dtype and one rank, whose shapes broadcast to S.
        as_numbers: whether integers that are read as elements are blended, in float arithmetic.
    """
    if not as_numbers:
        check_sampler("sample_grid", texture.kind, texture.dtype, texture.num_levels, sampler)
    look = plan.grid_look(layout_of(texture), function, tuple(operands), sampler)
    total = texture.dtype
    if sampler.decoding is ReadMode.ELEMENT and jnp.issubdtype(total, jnp.integer) and not as_numbers:
        look = look._replace(operands=jax.lax.stop_gradient(look.operands))
    else:
        total = sum_dtype(total, *(a.dtype for a in operands))
    smooth = lambda texture, operands: read(
        texture, look._replace(operands=operands), sampler.decoding, total, sampler.deterministic
    )
    if sampler.arithmetic is not Arithmetic.HARDWARE:
        out = smooth(texture, look.operands)
    else:
        single = lambda operands: tuple(a.astype(jnp.float32) for a in operands)
        exact = lambda texture, operands: exact_read(
            texture, look._replace(operands=single(operands)), sampler.decoding, total
        )
        out = primitives.straight_through(exact, smooth)(texture, look.operands)
    return out if as_numbers else out.astype(read_dtype(texture.dtype, sampler.decoding))


def fetch(texture: Texture, indices: tuple[Any, ...], *, layer: Any = None, level: int = 0) -> jax.Array:
    """Reads single texels by their integer index, without filter or address mode; outside is zero.

    Args:
        texture: a `Texture`.
        indices: a tuple of integer arrays, ``(x,)``, ``(x, y)`` or ``(x, y, z)``, that broadcast to a common shape S.
            An index below 0 or past the end reads zero, in every channel.
        layer: integers that broadcast with S, for a layered texture; a negative or too large layer reads the last.
        level: the mip level, a Python integer.

    Returns:
        S + (C,), in the texture's dtype, the texels as they are stored.

    Gradients: to floating texels, any order, both modes. Indices have none.

    Raises:
        ValueError: if indices, layer or level do not fit the texture.
        TypeError: if indices or layer are not integers.

    Source: `tex1Dfetch` of the CUDA C++ Programming Guide, which ignores address modes and returns 0 outside.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.fetch(jt.texture1d(jnp.array([[7], [8], [9]])), (jnp.array([-1, 0, 2, 3]),))[:, 0]
        Array([0, 7, 9, 0], dtype=int32)
    """
    check_texture("fetch", texture)
    if texture.kind.is_cube:
        raise ValueError("fetch: texture is a cubemap, which has no integer coordinates; read it with sample.")
    check_level("fetch", texture, level)
    where = check_texels("fetch", texture.kind, "indices", indices, layer)
    return _fetch(texture, where, level=level)


def gather(
    texture: Texture,
    coords: tuple[Any, ...],
    sampler: Sampler = Sampler(),  # noqa: B008, frozen and without arrays
    *,
    component: int = 0,
) -> jax.Array:
    """Reads one channel of the four texels that a linear read would blend, unfiltered.

    Args:
        texture: a 2D `Texture`.
        coords: ``(x, y)``, as in `sample`, broadcasting to S.
        sampler: address modes, read mode and coordinate units are used; the filter mode is not.
        component: which channel.

    Returns:
        S + (4,): with x0, y0 the lower tap of the footprint on each axis and x1, y1 the next, the texels at
        (x0, y1), (x1, y1), (x1, y0), (x0, y0): counter-clockwise from the lower left, as y points down. The dtype is
        that of a point read.

    Gradients: to floating texels and to the border colour, any order, both modes; to coordinates they are zero.

    Raises:
        ValueError: if the texture is not 2D, or `component` is not one of its channels.

    Source: `tex2Dgather` of the CUDA C++ Programming Guide; the order is that of the PTX instruction `tld4`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> texture = jt.texture2d(10 * jnp.arange(3)[:, None, None] + jnp.arange(3)[:, None])
        >>> jt.gather(texture, (1.0, 1.0), jt.Sampler(normalized_coords=False))
        Array([10, 11,  1,  0], dtype=int32)
    """
    check_texture("gather", texture)
    if texture.kind is not TextureKind.TEXTURE2D:
        raise ValueError(f"gather: texture is of kind {texture.kind.value!r}, expected a texture2d.")
    if not isinstance(component, int) or not 0 <= component < texture.channels:
        raise ValueError(
            f"gather: component is {component!r}, expected an int from 0 to {texture.channels - 1}: "
            f"the texture has {texture.channels} channels."
        )
    where = check_where("gather", texture.kind, coords, None)
    check_sampler("gather", texture.kind, texture.dtype, 1, dataclasses.replace(sampler, filter_mode="point"))
    result = read_dtype(texture.dtype, sampler.decoding)
    return _gather(texture, where, sampler=sampler, component=component, dtype=result)


def splat(
    values: Any,
    coords: tuple[Any, ...],
    shape: tuple[int, ...],
    sampler: Sampler = Sampler(),  # noqa: B008, frozen and without arrays
    *,
    kind: str | None = None,
    layer: Any = None,
    lod: Any = None,
    ddx: Any = None,
    ddy: Any = None,
    dtype: Any = None,
) -> Texture:
    """Spreads values over the texels around each position: the adjoint of `sample` in its texels.

    ``splat(v, c)[i] = sum_k w_k(c) v`` over the taps that read texel i. For all T and v,
    ``(sample(T, c) * v).sum() == (T * splat(v, c).texels).sum()``. It deposits particles on a grid and warps forward.

    Args:
        values: S + (C,), where S is the shape that `coords` and `layer` broadcast to.
        coords: a tuple of arrays, as in `sample`.
        shape: the shape of the texels, channels included, such as ``(H, W, C)``.
        sampler: how `sample` would read. Weight that falls on the border under ``address_mode="border"`` is dropped.
        kind: the kind of texture, such as ``"2d"``; by default it follows from the number of coordinates and from
            whether a layer is given.
        layer: integers, as in `sample`, to splat into a layered texture.
        lod, ddx, ddy: as in `sample`, to splat into a mip chain: with one of them the texture has all its levels.
        dtype: of the texels; the default is that of `values`. Sums are taken in float32, or float64 if values or
            coordinates are.

    Returns:
        A `Texture` of `shape`.

    Gradients: to any order, in both modes, to `values` and to the coordinates; conventions as in `sample`.

    Precision: on a GPU the order of additions, and so the last bits, may differ from run to run, unless
    ``sampler.deterministic``.

    Raises:
        ValueError: if shapes do not fit, or `sampler` cannot read floating texels.
        TypeError: if values are not floating, or coords are one stacked array.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.splat(jnp.ones((1, 1)), (jnp.array([0.5]),), (4, 1)).texels[:, 0]
        Array([0. , 0.5, 0.5, 0. ], dtype=float32)
    """
    if not isinstance(coords, tuple | list):
        raise TypeError(stacked_coords("splat", "coords", coords))
    texture_kind = infer_kind(kind, len(coords), layer)
    expected = (*AXIS_NAMES[texture_kind], "C")
    shape = tuple(int(n) for n in shape)
    if len(shape) != len(expected) or min(shape) < 1:
        raise ValueError(f"splat: shape is {shape}, expected ({', '.join(expected)}) for kind {texture_kind.value!r}.")
    check_faces(texture_kind, shape, "splat", "shape")
    values = jnp.asarray(values)
    if not jnp.issubdtype(values.dtype, jnp.floating):
        raise TypeError(f"splat: values has dtype {values.dtype}, expected floating numbers; use values.astype.")
    where = check_where("splat", texture_kind, coords, layer, lod, ddx, ddy)
    common = common_shape(where)
    if values.shape != (*common, shape[-1]):
        raise ValueError(
            f"splat: values has shape {values.shape}, expected {(*common, shape[-1])}: the shape {common} that the "
            f"coordinates broadcast to, and the {shape[-1]} channels of shape."
        )
    if sampler.read_mode is not ReadMode.ELEMENT:
        raise ValueError(
            "splat: sampler has read_mode='normalized_float', and splat makes floating texels; leave it out."
        )
    dtype = np.dtype(dtype or values.dtype)
    chain = None if lod is None and ddx is None else tuple(chain_shapes(texture_kind, shape, None, "splat"))
    chain = None if chain is not None and len(chain) == 1 else chain
    layout = Layout(texture_kind, shape, len(chain or (shape,)))
    check_sampler("splat", texture_kind, dtype, layout.num_levels, sampler)
    texels = _splat(values, where, layout=layout, sampler=sampler, dtype=dtype)
    return Texture(texels, None, texture_kind, chain)


@functools.partial(jax.jit, static_argnames=("sampler", "dtype"), inline=True)
def _sample(texture: Texture, where: ReadArguments, *, sampler: Sampler, dtype: np.dtype):
    where, total = as_operands(where), texture.dtype
    if sampler.decoding is ReadMode.ELEMENT and jnp.issubdtype(total, jnp.integer):
        where = jax.lax.stop_gradient(where)
    else:
        total = sum_dtype(total, *(c.dtype for c in where.coords))
    exact = sampler.arithmetic is Arithmetic.HARDWARE
    read = functools.partial(mean_read, sampler=sampler, total=total)
    if where.ddx is not None:
        # What a footprint makes of its sides is not kept between the passes of reverse mode, but computed again.
        read = jax.checkpoint(read)
    if exact:
        read = primitives.straight_through(functools.partial(hardware_read, sampler=sampler, total=total), read)
    return jnp.broadcast_to(read(texture, where), (*common_shape(where), texture.channels)).astype(dtype)


@functools.partial(jax.jit, static_argnames=("level",), inline=True)
def _fetch(texture: Texture, where: ReadArguments, *, level: int):
    bare = dataclasses.replace(texture, border_color=None)
    total = texture.dtype if jnp.issubdtype(texture.dtype, jnp.integer) else sum_dtype(texture.dtype)
    where = as_operands(where, integer=True)
    look = texel_look(layout_of(texture), where, level, AddressMode.BORDER, AddressMode.LAST)
    return read(bare, look, ReadMode.ELEMENT, total).astype(texture.dtype)


@functools.partial(jax.jit, static_argnames=("sampler", "component", "dtype"), inline=True)
def _gather(texture: Texture, where: ReadArguments, *, sampler: Sampler, component: int, dtype: np.dtype):
    """Four reads of one tap each."""
    where, total = jax.lax.stop_gradient(as_operands(where)), texture.dtype
    if not jnp.issubdtype(total, jnp.integer) or sampler.decoding is not ReadMode.ELEMENT:
        total = sum_dtype(total, *(c.dtype for c in where.coords))
    layout, (low, high) = layout_of(texture), LINEAR_TAPS

    def at_corner(look: Look, taps) -> Look:
        *front, y, x = look.axes
        return look._replace(axes=(*front, *(axis._replace(footprint=tap) for axis, tap in zip((y, x), taps))))

    def smooth(texture: Texture, where: ReadArguments, taps) -> jax.Array:
        look = plan.only_look(layout, plan.reach(layout, where, sampler), sampler)
        return read(texture, at_corner(look, taps), sampler.decoding, total, sampler.deterministic)

    def exact(texture: Texture, where: ReadArguments, taps) -> jax.Array:
        look = at_corner(hardware_look(layout, plan.hardware_reach(layout, where, sampler), sampler), taps)
        color = texture.border_color
        return _hardware.gather(texture.texels, color, look.coords, look.axes, sampler.decoding).astype(total)

    texels = []
    for taps in ((high, low), (high, high), (low, high), (low, low)):
        texel = functools.partial(smooth, taps=taps)
        if sampler.arithmetic is Arithmetic.HARDWARE:
            texel = primitives.straight_through(functools.partial(exact, taps=taps), texel)
        texels.append(texel(texture, where)[..., component])
    return jnp.stack(texels, axis=-1).astype(dtype)


@functools.partial(jax.jit, static_argnames=("layout", "sampler", "dtype"), inline=True)
def _splat(values: jax.Array, where: ReadArguments, *, layout: Layout, sampler: Sampler, dtype: np.dtype):
    where = as_operands(where)
    total = sum_dtype(values.dtype, dtype, *(c.dtype for c in where.coords))
    reach, values = plan.reach(layout, where, sampler), values.astype(total)
    if reach.reads is None:
        look = plan.only_look(layout, reach, sampler)
    else:
        # The reads along a footprint are one more axis in front.
        number = jnp.arange(1, sampler.max_anisotropy + 1, dtype=reach.reads.dtype)
        number = number.reshape(-1, *[1] * reach.reads.ndim)
        look, weight = plan.look_along(layout, jax.tree.map(lambda a: a[None], reach), sampler, number)
        values = values[None] * weight[..., None].astype(total)
    return primitives.splat(values, look.operands, look.axes, dtype, sampler.deterministic, look.grid)
