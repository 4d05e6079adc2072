"""Plans: from the arguments of a call to a `Read`, with its axes and an operand for each axis.

A plan starts from `ReadArguments`, and from the `Layout` of a texture. `ResolvedLevel` stands between the two and it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._checks.numbers import as_float, as_index
from ..._jax.shapes import broadcast_shapes
from ..._tables.address_rules import CLAMP, AddressRule
from ..._tables.filter_kernels import POINT
from ..._tables.storage_formats import Decoding, sum_dtype
from ...modes import TextureKind
from ...sampler import Sampler
from ...texture import Texture
from .axis import Axis, Given, Role, Stored
from .cube import NUM_FACES, SEAM, OnCube
from .footprint import InChain, level_axis
from .operands import Arrays, Grid, Operand, StoredOrder, as_given, split
from .spec import Combination, Read, ReadSpec


class ReadArguments(NamedTuple):
    """The arrays of a call, in the caller's order: coordinates or indices, layer, face, level and footprint."""

    coords: tuple[Any, ...]
    layer: Any = None
    face: Any = None
    lod: Any = None
    ddx: tuple[Any, ...] | None = None
    ddy: tuple[Any, ...] | None = None
    ddz: tuple[Any, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape S that everything broadcasts to."""
        return broadcast_shapes(*(a.shape for a in jax.tree.leaves(self)))

    def as_operands(self, *, integer: bool = False, beside: Sequence[np.dtype] = ()) -> "ReadArguments":
        """Checked arrays as the engine takes them: layers and `integer` coordinates int32, all else of one floating
        dtype; of one rank.

        Integers, weak types and 16-bit floats become float32, a strong float64 stays. Called under `jax.jit`.

        Args:
            beside: the dtypes of other floating numbers that the read computes with.
        """
        # Coordinates and footprints have one dtype; layers are int32, as are indices.
        layer, rest = self.layer, self._replace(layer=None)
        if integer:
            rest = jax.tree.map(as_index, rest)
        else:
            rest = jax.tree.map(as_float, rest)
            widest = sum_dtype(*(a.dtype for a in jax.tree.leaves(rest)), *beside)

            def widened(a: jax.Array) -> jax.Array:
                return a.astype(widest)

            rest = jax.tree.map(widened, rest)
        arguments = rest._replace(layer=None if layer is None else as_index(layer))
        # Operands of a read have one rank.
        rank = max(a.ndim for a in jax.tree.leaves(arguments))

        def of_rank(a: jax.Array) -> jax.Array:
            return jnp.expand_dims(a, tuple(range(rank - a.ndim)))

        return jax.tree.map(of_rank, arguments)


class Layout(NamedTuple):
    """The static half of a texture.

    Attributes:
        shape: the shape of the finest level, channels included. Sizes that are operands are `None` here.
        num_levels: the number of levels, or the largest possible one if sizes are operands.
        capacity: the number of texels in the flat array, if sizes are operands; otherwise `None`.
        window: the number of stored texels along each axis, if only a part of the texture is stored.
        uneven: whether each axis has knots, in stored order; empty if none has. Its coordinates come as positions, or
            as single taps for a filter of more than two.
    """

    kind: TextureKind
    shape: tuple[int, ...]
    num_levels: int = 1
    capacity: int | None = None
    window: tuple[int, ...] | None = None
    uneven: tuple[bool, ...] = ()

    @classmethod
    def of(cls, texture: "Texture | SizedTexture") -> "Layout":
        """The layout of a texture."""
        if isinstance(texture, SizedTexture):
            # With `None` for a size, code that needs to know it fails.
            shape = cast(tuple[int, ...], (*[None] * len(texture.sizes), texture.num_channels))
            return cls(texture.kind, shape, texture.num_levels, len(texture.texels), texture.window)
        uneven = tuple(knots is not None for knots in reversed(texture.knots or ()))
        return cls(texture.kind, texture.shape, texture.num_levels, uneven=uneven)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the filtered axes as they are stored: z, y, x."""
        return self.shape[-1 - self.kind.texel_ndim : -1]

    def axes(self, sampler: Sampler) -> tuple[Axis, ...]:
        """The filtered axes: z, y, x. A seamless cubemap has the address rule `SEAM`."""
        # The address rule of each axis.
        kernel = sampler.kernel
        normalized = sampler.normalized_coords or self.kind.is_cube
        if self.kind.is_cube and sampler.seamless_cubemap:
            rules = (SEAM if kernel.blends else CLAMP,) * 2
        else:
            rules = sampler.address_rules(self.kind.texel_ndim)[::-1]
        # Sizes that are operands have the capacity of the flat array for a bound.
        sizes = self.sizes if self.capacity is None else [Given(self.capacity)] * self.kind.texel_ndim
        axes = tuple(Axis(n, kernel, rule, normalized) for n, rule in zip(sizes, rules))
        # Along knots, coordinates come as positions, or as single taps of a long filter.
        if self.uneven:
            taps = Axis(0, POINT, CLAMP, integer=True) if kernel.num_taps > 2 else Axis(0, kernel, CLAMP)
            on_knots = (taps._replace(size=axis.size, address=axis.address) for axis in axes)
            axes = tuple(b if uneven else a for a, b, uneven in zip(axes, on_knots, self.uneven, strict=True))
        # Of a window, only a part of each axis is stored.
        if self.window is None:
            return axes
        return tuple(
            axis._replace(stored=Stored(count, count, is_window=True))
            for axis, count in zip(axes, self.window, strict=True)
        )


class SizedTexture(NamedTuple):
    """A texture whose sizes are arrays, so that one program reads textures of many sizes.

    Attributes:
        texels: (capacity, C): the texels of the texture, row after row and level after level, and then padding, which
            is never read.
        sizes: the sizes of the finest level, slowest axis first, int32 of one element each.
        border_color: as in `Texture`.
        num_levels: 1, or for a mip chain down to a single texel the largest possible number of levels.
        window: the number of stored texels along each axis, if only a part of a texture of one level is stored; then
            `texels` holds that part alone. It must have all texels that the samples of interest need; other samples
            may read any texel.
        starts: the first stored texel of each axis, from 0, int32 of one element each. The part may wrap around the end
            of an axis.
        channels_of_words: the number of channels, if `texels` are uint32, (capacity, 1), that hold uint8 texels in
            their lowest bytes, the first channel lowest. Such texels are read on CPUs alone, without derivatives.
    """

    texels: jax.Array
    sizes: tuple[jax.Array, ...]
    border_color: jax.Array | None = None
    num_levels: int = 1
    window: tuple[int, ...] | None = None
    starts: tuple[jax.Array, ...] = ()
    channels_of_words: int | None = None

    @property
    def kind(self) -> TextureKind:
        return {1: TextureKind.TEXTURE1D, 2: TextureKind.TEXTURE2D, 3: TextureKind.TEXTURE3D}[len(self.sizes)]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.texels.dtype if self.channels_of_words is None else np.uint8)

    @property
    def num_channels(self) -> int:
        return self.channels_of_words or self.texels.shape[-1]

    @property
    def cut(self) -> None:
        """As in `Texture`; the levels are not partitioned over devices."""
        return None


def sizes_of(texture: Texture | SizedTexture) -> tuple[jax.Array, ...]:
    """The operands for the sizes of a texture and for the starts of its stored part; none if sizes are known."""
    return (*texture.sizes, *texture.starts) if isinstance(texture, SizedTexture) else ()


class ResolvedLevel(NamedTuple):
    """A call whose mip level and reads along a footprint are known, before it becomes a `Read`.

    Attributes:
        coords: the caller's coordinates.
        level: the mip level to read; `None` for a texture of one level, or if `lod` is given instead.
        side: the side of the footprint along which several reads lie; `None` for one read at `coords`.
        num_reads: the number of reads along `side`, in float arithmetic.
        log_ratio: the binary logarithm of the ratio of the footprint's sides, in 1/256, in hardware arithmetic; it
            takes the place of `num_reads`.
        face_coords: the face, u and v that a direction into a cube meets, if they are computed before the read.
        lod: the level of detail without the sampler's bias and bounds; the read itself applies them.
        sizes: the sizes and starts that are operands, slowest axis first.
    """

    coords: Arrays
    layer: jax.Array | None
    level: jax.Array | None
    side: Arrays | None = None
    num_reads: jax.Array | None = None
    log_ratio: jax.Array | None = None
    face_coords: Arrays | None = None
    lod: jax.Array | None = None
    sizes: tuple[jax.Array, ...] = ()


# Plans


def plan_of_grid(
    layout: Layout,
    function: Callable[..., Arrays],
    operands: Sequence[Operand],
    sampler: Sampler,
    dtype: np.dtype,
    affine_axes: int = 0,
    sizes: Sequence[jax.Array] = (),
) -> Read:
    """The read of a texture of one level at the coordinates ``function(*operands)``, which the read itself computes."""
    arrays, stacks = split(operands)
    spec = spec_of(layout.axes(sampler), sampler, dtype, StoredOrder(function, affine_axes))
    return Read(spec, arrays).replace(stacks=stacks).with_given(sizes)


def plan_of_axes(axes: Sequence[Axis], grid: Grid, operands: Sequence[Operand], dtype: np.dtype) -> Read:
    """The read of texels as numbers along axes, in stored order, at the coordinates ``grid(*operands)``."""
    arrays, stacks = split(operands)
    spec = ReadSpec(tuple(axes), Decoding.ELEMENT, np.dtype(dtype), grid=grid, stacks=stacks)
    return Read(spec.made_deterministic(None), arrays)


def plan_of_texels(
    layout: Layout,
    arguments: ReadArguments,
    level: int,
    space: AddressRule,
    layers: AddressRule,
    dtype: np.dtype,
    deterministic: bool | None = None,
) -> Read:
    """The read of single texels of one level by their indices.

    Args:
        space: the address rule of the indices x, y, z.
        layers: the address rule of layers and faces.
        deterministic: as in `Sampler`.
    """
    whole = functools.partial(Axis, kernel=POINT, integer=True)
    rank = [1] * arguments.coords[0].ndim
    # Every axis that a texture may have, and its index.
    candidates = [
        (whole(layout.num_levels, address=CLAMP, role=Role.LEVEL), jnp.full(rank, level, jnp.int32)),
        (whole(layout.shape[0], address=layers, role=Role.LAYER), arguments.layer),
        (whole(NUM_FACES, address=layers, role=Role.FACE), arguments.face),
        *((whole(n, address=space), index) for n, index in zip(layout.sizes, arguments.coords[::-1])),
    ]
    # Those of this texture; a level axis only with several levels.
    present = [(axis, index) for axis, index in candidates if index is not None]
    axes, operands = zip(*present[0 if layout.num_levels > 1 else 1 :])
    spec = ReadSpec(axes, Decoding.ELEMENT, np.dtype(dtype))
    return Read(spec.made_deterministic(deterministic), operands)


def plan_of_level(layout: Layout, resolved: ResolvedLevel, sampler: Sampler, dtype: np.dtype) -> Read:
    """The read at the coordinates of a resolved call."""
    # The filtered axes take the coordinates, in stored order.
    axes, operands, grid = layout.axes(sampler), resolved.coords[::-1], as_given
    # A cube has an axis of faces in front, and a direction, from which the read finds face, v and u.
    if layout.kind.is_cube:
        rule = SEAM if axes[-1].address is SEAM else CLAMP
        axes = (Axis(NUM_FACES, POINT, rule, integer=True, role=Role.FACE), *axes)
        if resolved.face_coords is None:
            front = sum(operand is not None for operand in (resolved.level, resolved.layer))
            operands, grid = resolved.coords, OnCube(front)
        else:
            face, u, v = resolved.face_coords
            operands = face, v, u
    # A layer comes before them.
    if resolved.layer is not None:
        axes, operands = (Axis.of_layers(layout.shape[0]), *axes), (resolved.layer, *operands)
    # A level comes first. Of a level of detail, the read applies the sampler's bias and bounds.
    if layout.num_levels > 1:
        level = resolved.level
        if level is None:
            assert resolved.lod is not None
            level, grid = resolved.lod, InChain(sampler, layout.num_levels, grid)
        axes, operands = (level_axis(layout.num_levels, sampler), *axes), (level, *operands)
    return Read(spec_of(axes, sampler, dtype, grid), operands).with_given(resolved.sizes)


def spec_of(axes: tuple[Axis, ...], sampler: Sampler, dtype: np.dtype, grid: Grid) -> ReadSpec:
    """The static half of a read along axes, with a sampler's options."""
    spec = ReadSpec(axes, sampler.decoding, np.dtype(dtype), grid=grid, combination=combination(sampler))
    return spec.made_deterministic(sampler.deterministic)


def combination(sampler: Sampler) -> Combination:
    """How the taps of a read become its value. One or two taps need no limit: their mean lies between them."""
    limits = sampler.limit is not None and sampler.kernel.num_taps > 2
    return Combination.LIMITED if limits else Combination.BLEND


# Footprints


def without_nan(side: Arrays) -> Arrays:
    """A side of a footprint, with 0 in place of NaN."""
    return tuple(jnp.where(d == d, d, 0) for d in side)
