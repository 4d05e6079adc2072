"""Textures that the texture unit of a GPU reads, inside jitted programs."""

import ctypes
import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike

from ._blocks.formats import FORMATS, blocks_along
from ._checks.calls import public
from ._checks.words import listing
from ._hardware.read import result_dtype
from ._reads.arguments import check_texture
from ._reads.unit import UnitTexture
from ._tables.address_rules import CLAMP
from ._unit import driver, objects
from .compressed import check_blocks, texture_of_blocks
from .modes import Arithmetic, BlockFormat, FilterMode, ReadMode, TextureKind, choose
from .sampler import Sampler, check_sampler
from .sampling import check_on_knots
from .texture import AXIS_NAMES, Texture

__all__ = ["bind", "bind_compressed"]
__dir__ = listing(__all__)

UNIT = Sampler(arithmetic="hardware")
MAX_CHANNELS = 4
# Larger images cannot be gathered from.
MAX_GATHERED = 32768
ADDRESS_MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
# A bound of levels that is larger than any number of levels.
MANY_LEVELS = 1000.0
# By the kind of dtype of a result, what a texture that is gone returns: the dtype of a texel, and its bits.
NOTHING = {"f": ("float32", 0x7FC00000), "i": ("int32", 0), "u": ("uint32", 0)}


@public
def bind(texture: Texture, sampler: Sampler | None = None, *, keep_texels: bool = True) -> Texture:
    """Copies a texture into a CUDA array, and makes a texture object of it, by which the texture unit of a GPU reads.

    Reads of the result with `sampler`, or without a sampler, are instructions of the unit, inside `jax.jit`, too:
    `sample` with every kind of level of detail, `gather`, kernels of `fused_map`, and `jaxtex.cuda`. They return the
    bits of ``arithmetic="hardware"``; those of anisotropic reads are the unit's own, which hardware arithmetic follows
    closely. On a CPU, or another device without such a unit, the result is read in hardware arithmetic.

    Bind what stays the same and is read at scattered places, along footprints, or in volumes: see `docs/unit.md`.

    Args:
        texture: a `Texture` of known values, on one NVIDIA GPU or replicated over several. Texels are uint8, int8,
            uint16, int16, float16, float32, or integers of 32 bits, of 1 to 4 channels; three take the memory of four.
        sampler: how reads read, with ``arithmetic="hardware"``. Normalized coordinates are needed under wrap and
            mirror, and for mip chains. ``None`` is ``Sampler(arithmetic="hardware")``.
        keep_texels: whether the texels stay beside the copy. They serve derivatives, devices without a texture unit,
            and reads by other samplers. Without a texture unit they are always kept.

    Returns:
        A `Texture` with a `sampler`, and a handle as a further leaf. The copy lies outside of the memory that XLA
        manages, and takes at least that of the texels. It is destroyed when no array holds the handle, after the
        programs that use it, or at the end of a block ``with bind(...) as texture``. Reads by a copied handle then
        return NaN, or 0. Its attribute ``bound`` is the texture without the texture object.

    Gradients: none in `texture`. Reads of the result have derivatives with respect to coordinates, level of detail and
        the kept texels: those of the float read, as for ``arithmetic="hardware"``.

    Raises:
        TypeError: inside a traced program.
        ValueError: if no texture unit can read the texture so.
        RuntimeError: without a driver of CUDA, or if the driver refuses, for example for lack of memory.

    Source: texture objects of the CUDA C++ Programming Guide, and of the CUDA Driver API.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> texture = jt.unit.bind(jt.texture2d(jnp.array([[[0.0], [1.0]], [[2.0], [3.0]]])))
        >>> jt.sample(texture, (0.5, 0.25))
        Array([0.5], dtype=float32)
    """
    check_texture("bind", texture)
    check_known("bind", "texture", texture)
    if isinstance(texture, UnitTexture):
        raise ValueError("bind: texture is bound already; pass the texture that was bound, texture.bound.")
    sampler = sampler or UNIT
    check_bound("bind", texture, sampler)
    check_on_knots("bind", texture, sampler)
    if not on_gpus(texture.texels):
        return without_unit(texture, sampler)
    levels = texture.levels
    if texture.num_channels == 3:
        levels = tuple(jnp.pad(level, [(0, 0)] * (level.ndim - 1) + [(0, 1)]) for level in levels)
    if levels[0].devices() != texture.texels.devices():  # a default device has computed them
        levels = jax.device_put(levels, texture.texels.sharding)
    channels = levels[0].shape[-1]
    stored = Format(driver.FORMATS[str(texture.dtype)], channels, channels * texture.dtype.itemsize)
    handle = handle_of(texture, sampler, levels, [level.shape[:-1] for level in levels], stored)
    return with_handle(texture, sampler, handle, keep_texels=keep_texels)


@public
def bind_compressed(
    blocks: ArrayLike | Sequence[ArrayLike],
    format: BlockFormat | str,
    shape: tuple[int, ...],
    sampler: Sampler | None = None,
    *,
    kind: TextureKind | str = "2d",
    border_color: ArrayLike | None = None,
    keep_texels: bool = False,
) -> Texture:
    """`bind` for blocks as they are stored, which the unit decodes when it reads: 4 to 8 times less memory than texels.

    Args:
        blocks, format, shape, kind, border_color: as in `jaxtex.block_compressed`; not ``"rgb10a2"``, whose texels are
            no blocks.
        sampler: as in `bind`. ``None`` is ``Sampler(arithmetic="hardware", read_mode="normalized_float")``, and for
            BC6H, whose texels are floats, ``Sampler(arithmetic="hardware")``.
        keep_texels: whether decoded texels are kept, too. Without a texture unit they are always kept.

    Returns:
        A bound `Texture`, whose shape and dtype are those that `jaxtex.block_compressed` returns.

    Gradients: as for `bind`.

    Raises:
        TypeError, ValueError, RuntimeError: as `bind` and `jaxtex.block_compressed`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> red = jnp.array([0, 248, 0, 0, 0, 0, 0, 0], jnp.uint8)  # two colors, and the indices of 16 texels
        >>> jt.sample(jt.unit.bind_compressed(red, "bc1", (4, 4)), (0.5, 0.5))
        Array([1., 0., 0., 1.], dtype=float32)
    """
    name = "bind_compressed"
    block_format = choose(name, "format", format, BlockFormat)
    check_known(name, "blocks", blocks)
    if (row := FORMATS[block_format]).side == 1:
        raise ValueError(f"{name}: format is {block_format.value!r}, whose words are no blocks; use block_compressed.")
    # The texture as `block_compressed` decodes it: its texels, or their shapes and dtype alone.
    decode = functools.partial(
        texture_of_blocks, name, format=format, shape=shape, kind=kind, border_color=border_color
    )
    levels = [*blocks] if isinstance(blocks, tuple | list) else [blocks]
    has_unit = bool(levels) and on_gpus(levels[0])
    texture = decode(blocks) if keep_texels or not has_unit else jax.eval_shape(decode, blocks)
    is_float = texture.dtype == jnp.float16
    if sampler is None:
        sampler = UNIT if is_float else Sampler(arithmetic="hardware", read_mode="normalized_float")
    if not is_float and sampler.read_mode is not ReadMode.NORMALIZED_FLOAT:
        raise ValueError(
            f"{name}: sampler has read_mode='element', but texels of {block_format.value} are fractions; use "
            "'normalized_float'."
        )
    check_bound(name, texture, sampler)
    if not has_unit:
        return without_unit(texture, sampler)
    if border_color is not None:
        texture = dataclasses.replace(texture, border_color=jnp.asarray(border_color))
    sizes = [level[:-1] for level in texture.level_shapes or (texture.shape,)]
    given = [check_blocks(name, f"blocks[{k}]", a, block_format, n) for k, (a, n) in enumerate(zip(levels, sizes))]
    code = driver.OF_BLOCKS[block_format.value] + (sampler.srgb and block_format.value in driver.WITH_SRGB)
    handle = handle_of(texture, sampler, given, sizes, Format(code, row.channels, row.size, row.side))
    return with_handle(texture, sampler, handle, keep_texels=keep_texels)


def with_handle(texture: Texture, sampler: Sampler, handle: jax.Array, *, keep_texels: bool) -> UnitTexture:
    """A texture that is bound, or the description of one by shapes and dtypes."""
    return UnitTexture(
        texture.texels if keep_texels else None,  # pyright: ignore[reportArgumentType]
        texture.border_color,
        texture.kind,
        texture.level_shapes,
        handle=handle,
        sampler=sampler,
        stored=(texture.shape, np.dtype(texture.dtype)),
    )


def without_unit(texture: Texture, sampler: Sampler) -> UnitTexture:
    """The texture where there is no texture unit; its handle names nothing."""
    sharding = getattr(texture.texels, "sharding", None)
    where = NamedSharding(sharding.mesh, PartitionSpec()) if isinstance(sharding, NamedSharding) else None
    handle = jax.device_put(np.zeros(objects.HANDLE_SIZE, np.uint32), where)
    return with_handle(texture, sampler, handle, keep_texels=True)


# Checks


def check_known(name: str, argument: str, values: object) -> None:
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values)):
        raise TypeError(
            f"{name}: {argument} is traced, and a texture object is made of values that are known; call {name} outside "
            "of jax.jit, and pass the bound texture to the program."
        )


def check_bound(name: str, texture: Texture, sampler: Sampler) -> None:
    """Checks that a texture unit reads such a texture so, as hardware arithmetic does."""
    kind, shape = texture.kind, texture.shape
    if sampler.arithmetic is not Arithmetic.HARDWARE:
        raise ValueError(
            f"{name}: sampler has arithmetic='float', and a texture unit computes in fixed point; use "
            "arithmetic='hardware'."
        )
    check_sampler(name, kind, texture.dtype, texture.num_levels, shape[-2], sampler)
    if not 1 <= shape[-1] <= MAX_CHANNELS:
        raise ValueError(
            f"{name}: texture has {shape[-1]} channels, and a texture unit reads 1 to {MAX_CHANNELS}; bind several "
            "textures."
        )
    if not sampler.normalized_coords and not kind.is_cube:
        repeating = [rule.name for rule in sampler.address_rules(kind.texel_ndim) if rule.repeats]
        if repeating:
            raise ValueError(
                f"{name}: sampler has normalized_coords=False, but a texture unit takes normalized coordinates for "
                f"address_mode={repeating[0]!r}; use normalized_coords=True."
            )


def on_gpus(texels: Any) -> bool:
    """Whether an array is on GPUs, or would be put there."""
    devices = cast(Any, texels.devices() if isinstance(texels, jax.Array) else jax.devices())
    return all(device.platform == "gpu" for device in devices)


# What the driver is told


class Format(NamedTuple):
    """How an array stores texels.

    Attributes:
        code: the format, as the driver numbers them.
        num_bytes: of a texel, or of a block of `side` by `side` texels.
    """

    code: int
    num_channels: int
    num_bytes: int
    side: int = 1


def handle_of(
    texture: Texture,
    sampler: Sampler,
    levels: Sequence[jax.Array],
    sizes: Sequence[tuple[int, ...]],
    stored: Format,
) -> jax.Array:
    """The handle of a texture object on each device that holds the levels, all of them whole.

    Args:
        levels: what an array stores, level by level.
        sizes: those of the levels in texels, slowest axis first.
    """
    kind, returned = texture.kind, result_dtype(texture.dtype, sampler.decoding).kind
    name, nothing = NOTHING[returned]
    one_texel = [6 if axis == "6" else 1 for axis in AXIS_NAMES[kind]]
    content = functools.partial(
        objects.Content,
        rows=[rows_of(kind, n, stored) for n in sizes],
        array=array_descriptor(kind, sizes[0], stored),
        texture=texture_descriptor(texture, sampler),
        sort=(kind, returned),
        empty=array_descriptor(kind, one_texel, Format(driver.FORMATS[name], MAX_CHANNELS, 16)),
        nothing=nothing,
    )
    jax.block_until_ready(levels)
    first = levels[0]
    if len(first.devices()) == 1:
        (device,) = first.devices()
        return objects.slots_of(device).made(content(levels))
    if not isinstance(first.sharding, NamedSharding) or not first.sharding.is_fully_replicated:
        raise ValueError(
            "bind: texture is sharded, and each texture unit reads a whole texture; replicate it with "
            "jax.device_put(texture, NamedSharding(mesh, P()))."
        )
    handles: list[Any] = []
    for number, shard in enumerate(first.addressable_shards):
        parts = [level.addressable_shards[number].data for level in levels]
        handles.append(objects.slots_of(shard.device).made(content(parts)))
    sharding = NamedSharding(first.sharding.mesh, PartitionSpec())
    return jax.make_array_from_single_device_arrays((objects.HANDLE_SIZE,), sharding, handles)


def array_descriptor(kind: TextureKind, sizes: Sequence[int], stored: Format) -> driver.ArrayDescriptor:
    """The descriptor of an array of a texture of these sizes, slowest axis first."""
    *front, width = sizes
    flags = kind.layered * driver.LAYERED | kind.is_cube * driver.CUBEMAP
    if kind is TextureKind.TEXTURE2D and max(sizes) <= MAX_GATHERED and stored.side == 1:
        flags |= driver.TEXTURE_GATHER
    height = front.pop() if kind.texel_ndim > 1 else 0
    depth = math.prod(front) if front else 0
    return driver.ArrayDescriptor(width, height, depth, stored.code, stored.num_channels, flags)


def rows_of(kind: TextureKind, sizes: Sequence[int], stored: Format) -> tuple[int, int, int]:
    """The bytes of a row of texels or of blocks, and the numbers of rows and of slices."""
    *front, width = sizes
    height = front.pop() if kind.texel_ndim > 1 else 1
    return blocks_along(width, stored.side) * stored.num_bytes, blocks_along(height, stored.side), math.prod(front)


def texture_descriptor(texture: Texture, sampler: Sampler) -> driver.TextureDescriptor:
    """The descriptor of a texture object with the options of a sampler."""
    kind, is_element = texture.kind, sampler.read_mode is ReadMode.ELEMENT
    # The unit reads a row as an image of height 1, so the modes of other axes count, too.
    rules = (*sampler.address_rules(kind.texel_ndim), *[CLAMP] * 3)[:3]
    flags = is_element * driver.READ_AS_INTEGER | sampler.srgb * driver.SRGB
    flags |= (sampler.normalized_coords or kind.is_cube) * driver.NORMALIZED_COORDINATES
    flags |= (kind.is_cube and sampler.seamless_cubemap) * driver.SEAMLESS_CUBEMAP
    # A border color of integers that are read as elements has their bits.
    of_integers = is_element and not jnp.issubdtype(texture.dtype, jnp.floating)
    color = np.zeros(MAX_CHANNELS, np.int64 if of_integers else np.float32)
    if texture.border_color is not None:
        color[: texture.num_channels] = np.asarray(texture.border_color)
    bits = (color.astype(np.uint32) if of_integers else color.view(np.uint32)).tolist()
    return driver.TextureDescriptor(
        address_modes=(ctypes.c_int * 3)(*(ADDRESS_MODES[rule.name] for rule in rules)),
        filter_mode=sampler.filter is FilterMode.LINEAR,
        flags=flags,
        max_anisotropy=sampler.max_anisotropy,
        mipmap_filter_mode=sampler.mipmap_filter_mode is FilterMode.LINEAR,
        mipmap_level_bias=sampler.mipmap_level_bias,
        min_mipmap_level_clamp=min(sampler.min_mipmap_level_clamp, MANY_LEVELS),
        max_mipmap_level_clamp=min(sampler.max_mipmap_level_clamp, MANY_LEVELS),
        border_color=(ctypes.c_uint32 * 4)(*bits),
    )
