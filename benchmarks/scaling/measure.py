"""Figures: each function of a work on each number of devices, compared with one device and timed beside it."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt

from ..peers.protocol import on_gpu, wait
from ..timing import side_by_side
from .collectives import bytes_sent
from .works import Arrays, Work

AXIS = "devices"


@dataclasses.dataclass
class Figure:
    """What was found out about a function of so many rows on so many devices.

    Attributes:
        milliseconds: the median; none if there is a problem.
        arguments, results, temporaries: bytes on each device, of the compiled program.
        sent: bytes that each device sends in a call.
        difference: from one device, as a share of the largest value; none where that is too large for one device.
        problem: what kept it from being timed.
    """

    work: str
    function: str
    rows: int
    devices: int
    milliseconds: float | None = None
    arguments: int = 0
    results: int = 0
    temporaries: int = 0
    sent: int = 0
    difference: float | None = None
    problem: str = ""


class DiffersError(Exception):
    """The result of several devices is not that of one."""


def sizes(work: Work, counts: Sequence[int]) -> dict[int, list[int]]:
    """On how many devices each number of rows is measured."""
    found = {work.strong: [1, *counts]}
    if work.weak is not None:
        found.setdefault(work.weak, []).append(1)
        for count in counts:
            found.setdefault(work.weak * count, []).append(count)
    return {rows: sorted(set(some)) for rows, some in found.items()}


def figures(work: Work, counts: Sequence[int], seconds: float) -> Iterator[list[Figure]]:
    """Those of each function. `counts` are above 1."""
    for rows, some in sizes(work, counts).items():
        places = {count: Place(work, rows, count) for count in some}
        alone = work.make(rows)
        given = {count: place.arrays(alone) for count, place in places.items()}
        for name in work.functions:
            yield measured(name, places, given, seconds)


def measured(name: str, places: "dict[int, Place]", given: dict[int, Arrays], seconds: float) -> list[Figure]:
    """A function on each number of devices, the fewest first."""
    found, runs, alone = list[Figure](), dict[str, Any](), None
    for count, place in places.items():
        figure = Figure(place.work.name, name, place.rows, count)
        found.append(figure)
        try:
            program = place.compiled(name, given[count])
            describe(figure, program)
            result = place.work.compared(wait(program(*given[count])))
            if count == 1:
                alone = result
            elif alone is not None:
                share = difference(result, alone)
                if share > place.work.tolerance:
                    raise DiffersError(f"differs from one device by {share:.1e} of the largest value")
                figure.difference = share
            del result
        except Exception as error:  # of a compiler, of an allocator, of a package that is missing
            figure.problem = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            continue
        # Collectives of a CPU need all of its threads, so there nothing is queued.
        finish = (lambda result: result) if on_gpu() else wait
        runs[str(count)] = lambda program=program, args=given[count], finish=finish: finish(program(*args)), wait
    del alone
    ms = side_by_side(runs, seconds, f"{places[max(places)].work.name}, {name}") if runs else {}
    for figure in found:
        figure.milliseconds = ms.get(str(figure.devices))
    return found


def describe(figure: Figure, program: Any) -> None:
    """The bytes of a compiled program, on each device."""
    stats = program.memory_analysis()
    figure.arguments, figure.results = stats.argument_size_in_bytes, stats.output_size_in_bytes
    figure.temporaries = stats.temp_size_in_bytes
    figure.sent = bytes_sent(program.as_text(), figure.devices) if figure.devices > 1 else 0


@dataclasses.dataclass(frozen=True)
class Place:
    """So many devices, for a work of so many rows."""

    work: Work
    rows: int
    count: int

    @property
    def mesh(self) -> Mesh:
        """Explicit, so that types say how arrays are cut; automatic where XLA is to partition the program."""
        kind = AxisType.Auto if self.work.method(self.rows) is None else AxisType.Explicit
        return jax.make_mesh((self.count,), (AXIS,), axis_types=(kind,), devices=jax.devices()[: self.count])

    def arrays(self, alone: Arrays) -> Arrays:
        """Arrays of one device as this work cuts them. Parts go from device to device."""
        if self.count == 1:
            return jax.device_put(alone, jax.devices()[0])
        mesh = self.mesh
        return tuple(
            jax.tree.map(lambda a: in_parts(a, mesh), array) if cut else jax.device_put(array, NamedSharding(mesh, P()))
            for array, cut in zip(alone, self.work.cut)
        )

    def compiled(self, name: str, args: Arrays) -> Any:
        """The program of a function. A new function each time, as `jax.jit` keeps what it has traced."""
        function: Callable[..., Any] = lambda *args: self.work.functions[name](*args)
        if self.count == 1:
            return jax.jit(function).lower(*args).compile()
        method = self.work.method(self.rows)
        with jax.set_mesh(self.mesh):
            if method is None:
                return jax.jit(function).lower(*args).compile()
            with jt.sharded.using(method):
                return jax.jit(function).lower(*args).compile()


def in_parts(array: jax.Array, mesh: Mesh) -> jax.Array:
    """An array of one device, cut along its first axis."""
    own = len(array) // mesh.size
    parts = [
        jax.device_put(jax.lax.dynamic_slice_in_dim(array, k * own, own), device)
        for k, device in enumerate(mesh.devices.flat)
    ]
    return jax.make_array_from_single_device_arrays(array.shape, NamedSharding(mesh, P(AXIS)), parts)


def difference(found: Any, expected: Any) -> float:
    """The largest difference, as a share of the largest value of an array; compared part by part."""

    def of_array(a: jax.Array, one: jax.Array) -> float:
        largest, most = float(largest_value(one)), 0.0
        for shard in a.addressable_shards:
            part = one if shard.data.shape == one.shape else one[shard.index]
            most = max(most, float(largest_difference(shard.data, jax.device_put(part, shard.device))))
        return most / (largest or 1.0)

    return max(jax.tree.leaves(jax.tree.map(of_array, found, expected)))


@jax.jit
def largest_value(a: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(a.astype(jnp.float32)))


@jax.jit
def largest_difference(a: jax.Array, b: jax.Array) -> jax.Array:
    """Infinity where there is a NaN, which a maximum on a CPU may drop."""
    apart = jnp.abs(a.astype(jnp.float32) - b.astype(jnp.float32))
    return jnp.max(jnp.where(jnp.isnan(apart), jnp.inf, apart))
