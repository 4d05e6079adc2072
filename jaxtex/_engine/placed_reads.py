"""Reads of a texture that carries an explicit sharding.

Under explicit mesh axes the type of an array says how it is cut. Of a texture of which one axis is cut, samples travel
to texels if less moves so than the whole texture; else each device receives all of it. Or the caller has decided, see
`jaxtex.sharded`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from jax.sharding import PartitionSpec as P

from .axis import Role, inner_axes
from .cut_reads import EdgedRead, by_halo, by_routing, reach_of_filter
from .exchange import Cut
from .indexing import everywhere, explicit_sharding
from .meeting import METHOD, REPORT, Halo, Method, Routing, Whole
from .spec import ReadSpec, as_given

# A read: of texels, a border color, operands, and a spec.
Read = Callable[[jax.Array, Any, Sequence[jax.Array], ReadSpec], jax.Array]
MEBIBYTE = 2**20


def read_where_placed(
    read: Read,
    texels: jax.Array,
    color: jax.Array | None,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    edged: EdgedRead | None = None,
) -> jax.Array:
    """A read, of which each device computes a part if texels carry an explicit sharding.

    Args:
        edged: the same, without a color, of texels in three arrays, if there is one.
    """
    placed = explicit_sharding(texels)
    if placed is None or not any(placed.spec):
        return read(texels, color, operands, spec)
    # Numbers by themselves, whose axes are those of the samples.
    operands, spec = spec.numbers(operands), spec.of_numbers()
    cut = cut_of(placed, texels.shape, spec)
    samples = None if cut is None else Samples.of(operands, spec, cut)
    if cut is None or samples is None:
        return read(everywhere(texels), color, operands, spec)
    meeting = Meeting(texels, tuple(operands), spec, cut, samples)
    method = meeting.method()
    if REPORT.value is not None:
        REPORT.value.found.append(meeting.described(method))
    if isinstance(method, Whole):
        return read(everywhere(texels), color, operands, spec)
    return in_parts(read, color, meeting, method, edged if color is None else None)


def names_of(placed: Any) -> list[tuple[str, ...]]:
    """The mesh axes along which each axis of an array is cut. Axes at the end may be left out."""
    entries = () if placed is None else placed.spec
    return [() if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in entries]


def cut_of(placed: Any, shape: Sequence[int], spec: ReadSpec) -> Cut | None:
    """How a texture of one level is cut, if that is along one axis."""
    names = names_of(placed)
    names += [()] * (len(shape) - len(names))
    stored = [k for k, axis in enumerate(spec.axes) if axis.role is not Role.FACTOR]
    dimensions = [d for d, some in enumerate(names) if some]
    if len(dimensions) != 1 or len(stored) != len(shape) - 1 or dimensions[0] == len(shape) - 1:
        return None
    if inner_axes(spec.axes) != spec.axes or spec.axes[0].role is Role.LEVEL:
        return None
    (dimension,) = dimensions
    parts = math.prod(placed.mesh.shape[name] for name in names[dimension])
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
    def of(cls, operands: Sequence[jax.Array], spec: ReadSpec, cut: Cut) -> "Samples | None":
        """As their operands are cut, and along the mesh axes of the texture, by one more axis if need be."""
        shape = np.broadcast_shapes(*spec.sample_shapes(operands))
        names: list[tuple[str, ...]] = [()] * len(shape)
        for a in operands:
            for d, some in enumerate(names_of(explicit_sharding(a))):
                if some and a.shape[d] > 1:
                    names[d] = some
        used = {name for some in names for name in some}
        if used.issuperset(cut.names):
            return cls(shape, tuple(names), tuple(names), (0, 0))
        free = [d for d, some in enumerate(names) if not some]
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

    def all_names(self, cut: Cut) -> tuple[str, ...]:
        """The mesh axes along which samples or texels are cut."""
        return tuple({name: None for some in (*self.names, cut.names) for name in some})

    def spec_of(self, shape: Sequence[int]) -> P:
        """How an array is cut that broadcasts to the samples."""
        return P(*(names if n > 1 and names else None for n, names in zip(shape, self.names)))

    def padded(self, a: jax.Array) -> jax.Array:
        axis, count = self.padding
        if count == 0 or a.shape[axis] == 1:
            return a
        return jnp.pad(a, [(0, count if d == axis else 0) for d in range(a.ndim)], mode="edge")


class Meeting(NamedTuple):
    """A texture that is cut, and the samples that read it."""

    texels: jax.Array
    operands: tuple[jax.Array, ...]
    spec: ReadSpec
    cut: Cut
    samples: Samples

    @property
    def mesh(self) -> Any:
        return jax.typeof(self.texels).sharding.mesh

    @property
    def texel_bytes(self) -> int:
        """Of the whole texture."""
        return self.texels.size * self.texels.dtype.itemsize

    @property
    def sample_bytes(self) -> int:
        """Of the coordinates and the value of a sample."""
        return 4 * len(self.spec.axes) + self.spec.dtype.itemsize * self.texels.shape[-1]

    @property
    def can_be_routed(self) -> bool:
        """Whether each sample reads texels around one place of the axis that is cut."""
        spec = self.spec
        return spec.num_reads == 1 and not spec.summed_axes and spec.axes[self.cut.axis].address.apply is not None

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

    def described(self, method: Method) -> str:
        """What moves to each device, and what it holds, in a line."""
        cut, row = self.cut, self.texel_bytes / self.cut.size
        sent, buffers = 0, ""
        if isinstance(method, Routing):
            sent = cut.parts * self.capacity(method.slack) * self.sample_bytes
            buffers = f" and {sent / MEBIBYTE:.3g} MiB of samples a round"
        if isinstance(method, Whole):
            moved, held = self.texel_bytes - row * cut.own, self.texel_bytes
        else:
            routed = isinstance(method, Routing)
            reach = reach_of_filter(self.spec.axes[cut.axis], cut) if routed else method.reach
            moved, held = 2 * reach * row + sent, (cut.own + 2 * reach) * row
        parts = "1 part" if cut.parts == 1 else f"{cut.parts} parts"
        return (
            f"texels {self.texels.shape} {self.texels.dtype}, axis {cut.dimension} in {parts}: {method}; receives "
            f"{moved / MEBIBYTE:.3g} MiB, holds {held / MEBIBYTE:.3g} MiB of texels{buffers}"
        )


def in_parts(
    read: Read, color: jax.Array | None, meeting: Meeting, method: Halo | Routing, edged: EdgedRead | None
) -> jax.Array:
    """The read on each device."""
    texels, operands, spec, cut, samples = meeting
    colors, mesh = [] if color is None else [color], meeting.mesh

    def on_device(texels: jax.Array, colors: list[jax.Array], *operands: jax.Array) -> tuple[jax.Array, jax.Array]:
        alone = lambda texels, operands, spec: read(texels, colors[0] if colors else None, operands, spec)
        if isinstance(method, Halo):
            found = by_halo(alone, texels, operands, spec, cut, method.reach, edged)
            return found.values, jax.lax.psum(jnp.sum(~found.reached, dtype=jnp.int32), samples.all_names(cut))
        values = by_routing(alone, texels, operands, spec, cut, meeting.capacity(method.slack))
        return values, jnp.int32(0)

    operands = [samples.padded(a) for a in operands]
    specs = [samples.spec_of(a.shape) for a in operands]
    operands = [jax.reshard(a, jax.NamedSharding(mesh, s)) for a, s in zip(operands, specs)]
    cut_spec = P(*(cut.names if d == cut.dimension else None for d in range(texels.ndim)))
    colors = [jax.reshard(a, jax.NamedSharding(mesh, P())) for a in colors]
    out_specs = P(*(names or None for names in samples.names), None), P()
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(cut_spec, P(), *specs), out_specs=out_specs)
    (values, beyond), (axis, count) = run(texels, colors, *operands), samples.padding
    if isinstance(method, Halo):
        message = f"{{count}} samples need texels further than {method.reach} from those of their device; use a larger"
        checkify.debug_check(beyond == 0, f"{message} reach in jaxtex.sharded.Halo.", count=beyond)
    if samples.given == samples.names or (spec.grid is not as_given and not count):
        return values  # those of a grid are cut as the texture is
    values = jax.reshard(values, jax.NamedSharding(mesh, P(*(names or None for names in samples.given), None)))
    return jax.lax.slice_in_dim(values, 0, samples.shape[axis], axis=axis) if count else values
