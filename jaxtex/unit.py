"""Textures that the texture unit of a GPU reads, inside jitted programs."""

import ctypes
import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike

from ._blocks.formats import FORMATS, blocks_along
from ._checks.calls import public
from ._checks.words import listing
from ._reads.arguments import check_texture
from ._hardware.read import result_dtype
from ._reads.unit import UnitTexture
from ._tables.address_rules import CLAMP
from ._unit import driver, objects
from .compressed import block_compressed, check_blocks
from .modes import Arithmetic, BlockFormat, FilterMode, ReadMode, TextureKind, choose
from .sampler import Sampler, check_sampler
from .sampling import check_on_knots
from .texture import AXIS_NAMES, Texture

__all__ = ["UnitTexture", "bind", "bind_compressed"]
__dir__ = listing(__all__)

UNIT = Sampler(arithmetic="hardware")
MAX_CHANNELS = 4
# Larger images cannot be gathered from.
MAX_GATHERED = 32768
ADDRESS_MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
# A bound of levels that is larger than any number of levels.
MANY_LEVELS = 1000.0


@public(called="unit.bind")
def bind(texture: Texture, sampler: Sampler = UNIT, *, keep_texels: bool = True) -> UnitTexture:
    """Copies a texture into the blocks that the texture unit of a GPU reads, and binds it with a sampler.

    Reads of the result with `sampler`, or without a sampler, are instructions of the unit, inside `jax.jit`, too:
    `sample` with every kind of level of detail, `gather`, kernels of `fused_map`, and `jaxtex.cuda`. They return the
    bits of ``arithmetic="hardware"``; those of anisotropic reads are the unit's own, which hardware arithmetic follows
    closely. On a CPU, or another device without such a unit, the result is read in hardware arithmetic.

    Bind what stays the same and is read at scattered places, along footprints, or in volumes: see `docs/unit.md`.

    Args:
        texture: a `Texture` of known values, on one NVIDIA GPU or replicated over several. Texels are uint8, int8,
            uint16, int16, float16, float32, or integers of 32 bits, of 1 to 4 channels; three take the memory of four.
        sampler: how reads read, with ``arithmetic="hardware"``. Normalized coordinates are needed under wrap and
            mirror, and for mip chains.
        keep_texels: whether the texels stay beside the copy. They serve derivatives, devices without a texture unit,
            and reads by other samplers. Without a texture unit they are always kept.

    Returns:
        A `UnitTexture`: a `Texture` whose handle is a leaf. The copy lies outside of the memory that XLA manages, and
        takes at least that of the texels. It is destroyed when no array holds the handle, after the programs that use
        it, or at the end of a block ``with bind(...) as texture``. Reads by a copied handle then return NaN, or 0.

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
    check_texture("unit.bind", texture)
    check_known("unit.bind", "texture", texture)
    if isinstance(texture, UnitTexture):
        raise ValueError("unit.bind: texture is bound already; pass the texture that was bound, texture.bound.")
    check_bound("unit.bind", texture.kind, texture.shape, texture.dtype, texture.num_levels, sampler)
    check_on_knots("unit.bind", texture, sampler)
    made = bound(texture, sampler)
    if not on_gpus(texture.texels):
        return without_unit(made)
    levels = texture.levels
    if texture.num_channels == 3:
        levels = tuple(jnp.pad(level, [(0, 0)] * (level.ndim - 1) + [(0, 1)]) for level in levels)
    bytes_of_texel = levels[0].shape[-1] * levels[0].dtype.itemsize
    code, channels = driver.FORMATS[str(texture.dtype)], levels[0].shape[-1]
    array = array_descriptor(texture.kind, levels[0].shape[:-1], code, channels)
    rows = [rows_of(texture.kind, level.shape[:-1], bytes_of_texel) for level in levels]
    handle = handle_of(made, levels, rows, array, descriptor(made))
    return dataclasses.replace(made, handle=handle, texels=texture.texels if keep_texels else None)


@public(called="unit.bind_compressed")
def bind_compressed(
    blocks: ArrayLike | Sequence[ArrayLike],
    format: BlockFormat | str,
    shape: tuple[int, ...],
    sampler: Sampler | None = None,
    *,
    kind: TextureKind | str = "2d",
    border_color: ArrayLike | None = None,
    keep_texels: bool = False,
) -> UnitTexture:
    """`bind` for blocks as they are stored: the unit decodes them when it reads, and they take 4 to 8 times less memory.

    Args:
        blocks, format, shape, kind, border_color: as in `jaxtex.block_compressed`; not ``"rgb10a2"``, whose texels are
            no blocks.
        sampler: as in `bind`. ``None`` is ``Sampler(arithmetic="hardware", read_mode="normalized_float")``, and for
            BC6H, whose texels are floats, ``Sampler(arithmetic="hardware")``.
        keep_texels: whether decoded texels are kept, too. Without a texture unit they are always kept.

    Returns:
        A `UnitTexture`, whose shape and dtype are those that `jaxtex.block_compressed` returns.

    Gradients: as for `bind`.

    Raises:
        TypeError, ValueError, RuntimeError: as `bind` and `jaxtex.block_compressed`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> red = jnp.array([0, 248, 0, 0, 0, 0, 0, 0], jnp.uint8)  # two colors, and the indices of 16 texels
        >>> jt.sample(jt.unit.bind_compressed(red, "bc1", (4, 4)), (0.5, 0.5))
        Array([1., 0., 0., 1.], dtype=float32)
    """
    name = "unit.bind_compressed"
    block_format, row = choose(name, "format", format, BlockFormat), FORMATS[choose(name, "format", format, BlockFormat)]
    check_known(name, "blocks", blocks)
    if row.side == 1:
        raise ValueError(f"{name}: format is {block_format.value!r}, whose words are no blocks; use block_compressed.")
    # The texture as `block_compressed` decodes it: its texels, or their shapes and dtype alone.
    decode = functools.partial(block_compressed, format=format, shape=shape, kind=kind, border_color=border_color)
    levels = [*blocks] if isinstance(blocks, tuple | list) else [blocks]
    has_unit = on_gpus(levels[0])
    texture = decode(blocks) if keep_texels or not has_unit else jax.eval_shape(decode, blocks)
    is_float = texture.dtype == jnp.float16
    if sampler is None:
        sampler = UNIT if is_float else Sampler(arithmetic="hardware", read_mode="normalized_float")
    if not is_float and sampler.read_mode is not ReadMode.NORMALIZED_FLOAT:
        raise ValueError(
            f"{name}: sampler has read_mode='element', but texels of {block_format.value} are fractions; use "
            "'normalized_float'."
        )
    check_bound(name, texture.kind, texture.shape, texture.dtype, texture.num_levels, sampler)
    made = bound(texture, sampler)
    if not has_unit:
        return without_unit(made)
    kept = texture.texels if keep_texels else None
    shapes = [level[:-1] for level in texture.level_shapes or (texture.shape,)]
    given = [check_blocks(f"blocks[{k}]", level, block_format, size) for k, (level, size) in enumerate(zip(levels, shapes))]
    in_blocks = [(*size[:-2], *(blocks_along(n, row.side) for n in size[-2:])) for size in shapes]
    rows = [rows_of(texture.kind, size, row.size) for size in in_blocks]
    stored = f"{block_format.value}"
    array = array_descriptor(texture.kind, shapes[0], driver.OF_BLOCKS[stored] + (sampler.srgb and stored in driver.WITH_SRGB), row.channels)
    color = None if border_color is None else jnp.asarray(border_color)
    return dataclasses.replace(made, texels=kept, border_color=color, handle=handle_of(made, given, rows, array, descriptor(made, color)))


def bound(texture: Texture, sampler: Sampler) -> UnitTexture:
    """The texture without a texture object."""
    return UnitTexture(
        texture.texels,
        texture.border_color,
        texture.kind,
        texture.level_shapes,
        sampler=sampler,
        stored=(texture.shape, np.dtype(texture.dtype)),
    )


def without_unit(texture: UnitTexture) -> UnitTexture:
    """The texture where there is no texture unit; its handle names nothing."""
    sharding = getattr(texture.texels, "sharding", None)
    where = NamedSharding(sharding.mesh, PartitionSpec()) if isinstance(sharding, NamedSharding) else None
    return dataclasses.replace(texture, handle=jax.device_put(np.zeros(objects.HANDLE_SIZE, np.uint32), where))


# Checks


def check_known(name: str, argument: str, values: object) -> None:
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values)):
        raise TypeError(
            f"{name}: {argument} is traced, and a texture object is made of values that are known; call {name} outside "
            "of jax.jit, and pass the bound texture to the program."
        )


def check_bound(
    name: str, kind: TextureKind, shape: tuple[int, ...], dtype: Any, num_levels: int, sampler: Sampler
) -> None:
    """Checks that a texture unit reads such a texture so, as hardware arithmetic does."""
    if sampler.arithmetic is not Arithmetic.HARDWARE:
        raise ValueError(
            f"{name}: sampler has arithmetic='float', and a texture unit computes in fixed point; use "
            "arithmetic='hardware'."
        )
    check_sampler(name, kind, dtype, num_levels, shape[-2], sampler)
    if shape[-1] > MAX_CHANNELS:
        raise ValueError(
            f"{name}: texture has {shape[-1]} channels, and a texture unit reads up to {MAX_CHANNELS}; bind several "
            "textures."
        )
    if not sampler.normalized_coords and not kind.is_cube:
        repeating = [rule.name for rule in sampler.address_rules(kind.texel_ndim) if rule.repeats]
        if repeating or num_levels > 1:
            asked = f"address_mode={repeating[0]!r}" if repeating else "a mip chain"
            raise ValueError(
                f"{name}: sampler has normalized_coords=False, but a texture unit takes normalized coordinates for "
                f"{asked}; use normalized_coords=True."
            )


def on_gpus(texels: Any) -> bool:
    """Whether an array is on GPUs, or would be put there."""
    return isinstance(texels, jax.Array) and all(d.platform == "gpu" for d in texels.devices()) or (
        not isinstance(texels, jax.Array) and jax.default_backend() == "gpu"
    )


# What the driver is told


def array_descriptor(kind: TextureKind, sizes: Sequence[int], code: int, channels: int) -> driver.ArrayDescriptor:
    """The descriptor of an array of a texture: its sizes without channels, slowest axis first."""
    *front, width = sizes
    flags = kind.layered * driver.LAYERED | kind.is_cube * driver.CUBEMAP
    if kind is TextureKind.TEXTURE2D and max(sizes) <= MAX_GATHERED and code not in driver.OF_BLOCKS.values():
        flags |= driver.TEXTURE_GATHER
    height = front.pop() if kind.texel_ndim > 1 else 0
    return driver.ArrayDescriptor(width, height, math.prod(front) if front else 0, code, channels, flags)


def rows_of(kind: TextureKind, sizes: Sequence[int], size: int) -> tuple[int, int, int]:
    """The bytes of a row, the number of rows and of slices, of texels or blocks of `size` bytes."""
    *front, width = sizes
    height = front.pop() if kind.texel_ndim > 1 else 1
    return width * size, height, math.prod(front)


def descriptor(texture: UnitTexture, color: jax.Array | None = None) -> driver.TextureDescriptor:
    """The descriptor of a texture object with the options of a sampler."""
    sampler, kind = texture.sampler, texture.kind
    rules = [*sampler.address_rules(kind.texel_ndim)]
    # The unit reads a row as an image of height 1, so the modes of other axes count, too.
    modes = [ADDRESS_MODES[rule.name] for rule in (*rules, *[CLAMP] * 3)][:3]
    is_element = sampler.read_mode is ReadMode.ELEMENT
    flags = is_element * driver.READ_AS_INTEGER | sampler.srgb * driver.SRGB
    flags |= (sampler.normalized_coords or kind.is_cube) * driver.NORMALIZED_COORDINATES
    flags |= (kind.is_cube and sampler.seamless_cubemap) * driver.SEAMLESS_CUBEMAP
    color = texture.border_color if color is None else color
    stored = texture.dtype if is_element and not jnp.issubdtype(texture.dtype, jnp.floating) else np.float32
    given = np.zeros(4, np.float32 if stored == np.float32 else np.int32)
    given[: texture.num_channels] = 0 if color is None else np.asarray(color).astype(stored)
    return driver.TextureDescriptor(
        (ctypes.c_int * 3)(*modes),
        int(sampler.filter is FilterMode.LINEAR),
        flags,
        sampler.max_anisotropy,
        int(sampler.mipmap_filter_mode is FilterMode.LINEAR),
        sampler.mipmap_level_bias,
        min(sampler.min_mipmap_level_clamp, MANY_LEVELS),
        min(sampler.max_mipmap_level_clamp, MANY_LEVELS),
        (ctypes.c_uint32 * 4)(*given.view(np.uint32)),
    )


def handle_of(
    made: UnitTexture,
    levels: Sequence[jax.Array],
    rows: Sequence[tuple[int, int, int]],
    array: driver.ArrayDescriptor,
    texture: driver.TextureDescriptor,
) -> jax.Array:
    """The handle of a texture object on each device that holds the levels, all of them whole."""
    code = result_dtype(made.dtype, made.sampler.decoding).kind
    sizes = [6 if name == "6" else 1 for name in AXIS_NAMES[made.kind]]
    stored, nothing = {"f": ("float32", 0x7FC00000), "i": ("int32", 0), "u": ("uint32", 0)}[code]
    empty = array_descriptor(made.kind, sizes, driver.FORMATS[stored], MAX_CHANNELS)
    content = functools.partial(objects.Content, rows=rows, array=array, texture=texture, sort=(made.kind, code), empty=empty, nothing=nothing)
    jax.block_until_ready(levels)
    first = levels[0]
    if len(first.devices()) == 1:
        (device,) = first.devices()
        return objects.slots_of(device).made(content(levels))
    if not isinstance(first.sharding, NamedSharding) or not first.sharding.is_fully_replicated:
        raise ValueError(
            "unit.bind: texture is sharded, and each texture unit reads a whole texture; replicate it with "
            "jax.device_put(texture, NamedSharding(mesh, P()))."
        )
    handles = []
    for number, shard in enumerate(first.addressable_shards):
        parts = [level.addressable_shards[number].data for level in levels]
        handles.append(objects.slots_of(shard.device).made(content(parts)))
    sharding = NamedSharding(first.sharding.mesh, PartitionSpec())
    return jax.make_array_from_single_device_arrays((objects.HANDLE_SIZE,), sharding, handles)
