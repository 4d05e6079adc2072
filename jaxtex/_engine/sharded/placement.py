"""Where texels and samples lie: textures that carry an explicit sharding, and the samples of a read or a write.

Under explicit mesh axes the type of an array says how it is cut. Of a texture of which one axis is cut, samples travel
to texels if less moves so than the whole texture; else each device receives all of it. Or the caller has decided, see
`jaxtex.sharded`.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from ..._jax.contexts import METHOD
from ..._jax.indexing import explicit_sharding
from ..describe.axis import Axis, Role, inner_axes
from ..describe.levels import CutChain
from ..describe.spec import Combination, ReadSpec
from ..describe.stacks import Stack
from .cut import Cut
from .cut_chain import ChainCut
from .method import Halo, Method, Routing, Whole, report

MEBIBYTE = 2**20


def names_of(placed: NamedSharding | None) -> list[tuple[str, ...]]:
    """The mesh axes along which each axis of an array is cut. Axes at the end may be left out."""
    entries = () if placed is None else placed.spec
    return [() if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in entries]


def parts_of(placed: NamedSharding, names: Sequence[str]) -> int:
    """Into how many parts an axis is cut along some axes of the mesh."""
    return math.prod(placed.mesh.shape[name] for name in names)


def is_cut(placed: NamedSharding | None) -> bool:
    """Whether a sharding divides an array over devices."""
    return placed is not None and any(placed.spec)


def cut_of(
    placed: NamedSharding, shape: Sequence[int], axes: tuple[Axis, ...], chain: CutChain | None = None
) -> Cut | ChainCut | None:
    """How a texture is cut, if that is along one axis, or along all of its axis of parts."""
    if chain is not None:
        names, *others = names_of(placed)
        fits = parts_of(placed, names) == chain.parts and not any(others)
        return ChainCut.of(axes, names, chain) if fits and inner_axes(axes) == axes else None
    names = names_of(placed)
    names += [()] * (len(shape) - len(names))
    stored = [k for k, axis in enumerate(axes) if axis.role is not Role.WEIGHT]
    dimensions = [d for d, some in enumerate(names) if some]
    if len(dimensions) != 1 or len(stored) != len(shape) - 1 or dimensions[0] == len(shape) - 1:
        return None
    if inner_axes(axes) != axes or axes[0].role is Role.LEVEL:
        return None
    (dimension,) = dimensions
    parts = parts_of(placed, names[dimension])
    return Cut(stored[dimension], dimension, names[dimension], parts, shape[dimension])


class Samples(NamedTuple):
    """How samples are cut over devices.

    Attributes:
        shape: of all samples.
        names: of the mesh axes along which each of their axes is cut.
        given: the same as operands are cut.
        padding: along which axis some samples are added, so that parts are equal, and how many.
    """

    shape: tuple[int, ...]
    names: tuple[tuple[str, ...], ...]
    given: tuple[tuple[str, ...], ...]
    padding: tuple[int, int]

    @classmethod
    def of(
        cls, operands: Sequence[jax.Array], spec: ReadSpec, cut: Cut | ChainCut, values: jax.Array | None = None
    ) -> "Samples | None":
        """As their operands and values are cut, and along the mesh axes of the texture, by one more axis if need be.

        Samples that are summed are not cut.
        """
        shape = np.broadcast_shapes(*spec.sample_shapes(operands))
        names: list[tuple[str, ...]] = [()] * len(shape)
        for a in (*operands, *(() if values is None else (values,))):
            for d, some in enumerate(names_of(explicit_sharding(a))[: len(shape)]):
                if some and a.shape[d] > 1:
                    names[d] = some
        used, summed = {name for some in names for name in some}, [len(shape) + d for d in spec.summed_axes]
        if any(names[d] for d in summed):
            return None
        if used.issuperset(cut.names):
            return cls(shape, tuple(names), tuple(names), (0, 0))
        free = [d for d, some in enumerate(names) if not some and d not in summed]
        if used & set(cut.names) or not free:
            return None
        # The axis of the samples that lies along that of the texture, if they have one for each.
        along = cut.dimension if len(shape) == sum(axis.role is Role.SPACE for axis in spec.axes) else -1
        chosen = max(free, key=lambda d: (d == along, shape[d] % cut.parts == 0, shape[d]))
        given, names[chosen] = tuple(names), cut.names
        return cls(shape, tuple(names), given, (chosen, -shape[chosen] % cut.parts))

    def count(self, mesh: Any) -> int:
        """The samples of a device."""
        parts = math.prod(mesh.shape[name] for some in self.names for name in some)
        return -(-math.prod(self.shape) // parts)

    def all_names(self, cut: Cut | ChainCut) -> tuple[str, ...]:
        """The mesh axes along which samples or texels are cut."""
        return tuple({name: None for some in (*self.names, cut.names) for name in some})

    def spec_of(self, shape: Sequence[int]) -> P:
        """How an array is cut that broadcasts to the samples."""
        return P(*(names if n > 1 and names else None for n, names in zip(shape, self.names)))

    def spec_of_stacked(self, a: jax.Array, stack: Stack | None) -> P:
        """How an operand is cut, which may hold several numbers of each sample."""
        if stack is None:
            return self.spec_of(a.shape)
        entries = list(self.spec_of(stack.without_axis(a.shape)))
        entries.insert(a.ndim + stack.axis, None)
        return P(*entries)

    def wanted(self) -> jax.Array:
        """Which of the samples are not added, as an array that broadcasts to them."""
        axis, count = self.padding
        sizes = [n + count if d == axis else 1 for d, n in enumerate(self.shape)]
        return jnp.arange(sizes[axis], dtype=jnp.int32).reshape(sizes) < self.shape[axis]

    def values_spec(self) -> P:
        """How values of the samples are cut, whose channels are not."""
        return P(*(names or None for names in self.names), None)

    def padded(self, a: jax.Array) -> jax.Array:
        axis, count = self.padding
        if count == 0 or a.shape[axis] == 1:
            return a
        return jnp.pad(a, [(0, count if d == axis else 0) for d in range(a.ndim)], mode="edge")


class ShardedAccess(NamedTuple):
    """A texture that is cut, and the samples that read it or write it.

    Attributes:
        texels: of the texture: their shape, dtype and sharding.
        operands, spec: of the read, where each operand holds one number of each sample.
        stacked, stacked_spec: the same as they were given.
        splits_over_taps: whether a read is the sum of reads of some of its taps and of the others.
    """

    texels: jax.ShapeDtypeStruct
    operands: tuple[jax.Array, ...]
    spec: ReadSpec
    cut: Cut | ChainCut
    samples: Samples
    stacked: tuple[jax.Array, ...]
    stacked_spec: ReadSpec
    splits_over_taps: bool = True

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        dtype: Any,
        placed: NamedSharding,
        operands: Sequence[jax.Array],
        spec: ReadSpec,
        values: jax.Array | None = None,
        chain: CutChain | None = None,
    ) -> "ShardedAccess | None":
        """Of a texture that is cut along one axis, and samples that can be cut alike."""
        stacked = tuple(operands), spec
        # Numbers by themselves, whose axes are those of the samples.
        operands, spec = tuple(spec.numbers(operands)), spec.of_numbers()
        cut = cut_of(placed, shape, spec.axes, chain)
        samples = None if cut is None else Samples.of(operands, spec, cut, values)
        if cut is None or samples is None:
            return None
        return cls(jax.ShapeDtypeStruct(tuple(shape), dtype, sharding=placed), operands, spec, cut, samples, *stacked)

    @property
    def mesh(self) -> Any:
        return self.texels.sharding.mesh

    @property
    def texel_bytes(self) -> int:
        """Of the whole texture."""
        return math.prod(self.texels.shape) * self.texels.dtype.itemsize

    @property
    def sample_bytes(self) -> int:
        """Of the coordinates and the values of the reads of a sample."""
        return self.spec.num_reads * (4 * len(self.spec.axes) + self.spec.dtype.itemsize * self.texels.shape[-1])

    @property
    def can_be_routed(self) -> bool:
        """Whether the devices are known that store the taps of a sample, and the sums of each add up to its value."""
        joint = len(self.cut.step(self.spec.axes)[0]) > 1
        splits_over_taps = self.splits_over_taps and self.spec.combination is Combination.BLEND
        return self.cut.can_route(self.spec.axes) and (splits_over_taps or not joint)

    @property
    def num_samples(self) -> int:
        """The samples of a device."""
        return self.samples.count(self.mesh)

    def capacity(self, slack: float) -> int:
        """How many samples a device sends to another one at once."""
        return min(self.num_samples, max(1, math.ceil(slack * self.num_samples / self.cut.parts)))

    def method(self) -> Method:
        """How samples meet texels: as the caller says, if that can be, or as less moves."""
        chosen, others = METHOD.value, self.texel_bytes * (self.cut.parts - 1) // self.cut.parts
        if self.spec.expected is not None:
            return Whole()  # its derivative is that of another read
        if isinstance(chosen, Halo):
            return Whole() if self.cut.reaches_all(chosen.reach) else chosen
        if chosen is None and self.num_samples * self.sample_bytes < others:
            chosen = Routing()
        return chosen if isinstance(chosen, Routing) and self.can_be_routed else Whole()

    def report(self, method: Method) -> None:
        """Adds what moves to each device, and what it holds, to the report of a caller."""
        cut, row, texels = self.cut, self.texel_bytes / self.cut.size, self.texels
        of = texels.shape, texels.dtype, texels.sharding
        if isinstance(method, Whole):
            report_whole(*of)
            return
        if isinstance(method, Routing):
            reach = cut.reach_of_filter(self.spec.axes)
            of_one = self.capacity(method.slack) * self.sample_bytes
            sent = (cut.parts - 1) * of_one
            buffers = f" and {cut.parts * of_one / MEBIBYTE:.3g} MiB of samples a round"
        else:
            reach, sent, buffers = method.reach, 0, ""
        moved, held = 2 * reach * row + sent, (cut.own + 2 * reach) * row
        moves = f"receives {moved / MEBIBYTE:.3g} MiB, holds {held / MEBIBYTE:.3g} MiB of texels{buffers}"
        report(f"{described(*of)}: {method}; {moves}")


def described(shape: Sequence[int], dtype: Any, placed: NamedSharding) -> str:
    """A texture, and how it is cut, for a report."""
    parts = {d: parts_of(placed, names) for d, names in enumerate(names_of(placed)) if names}
    axes = f"{'axis' if len(parts) == 1 else 'axes'} {' and '.join(map(str, parts))}"
    counts = " and ".join(map(str, parts.values()))
    return f"texels {tuple(shape)} {dtype}, {axes} in {counts} part{'' if counts == '1' else 's'}"


def report_whole(shape: Sequence[int], dtype: Any, placed: NamedSharding) -> None:
    """Adds to the report of a caller what moves where each device receives a whole texture."""
    held = math.prod(shape) * np.dtype(dtype).itemsize / MEBIBYTE
    own = held / math.prod(parts_of(placed, names) for names in names_of(placed))
    moves = f"receives {held - own:.3g} MiB, holds {held:.3g} MiB of texels"
    report(f"{described(shape, dtype, placed)}: {Whole()}; {moves}")
