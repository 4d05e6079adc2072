"""The kernels of programs of one sample, and of their transposes. A thread computes one sample."""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...describe.program import Program
from ..build import launch
from ..build.launch import LANES
from ..build.source import read_source, scalars
from ..trace.elementwise import C_TYPES
from ..trace.emitter import Emitter
from ..trace.indexing import terms_of
from ..trace.statements import Names, RefusedProgram, UnknownPrimitive
from . import sites
from .parts import WIDTHS, Part, strides_of

# The threads of a block, and the samples of a row of its tile.
THREADS = 128
# A thread computes several samples if at least so many threads remain.
MOST_SAMPLES, LEAST_THREADS = 4, 2**19
# Arrays of more numbers are read where they are in memory; a thread loads all numbers of smaller ones.
MOST_LOADED = 16
WARP = "trace/warp.cuh"


class Tiles(NamedTuple):
    """The division of a grid into tiles, one for each block of threads, along the last three axes of the grid.

    Attributes:
        sizes: the sizes of the grid.
        lanes: the threads of a tile along each axis; 1 along axes before the last three.
        samples: the samples of a thread along the last axis.
    """

    sizes: tuple[int, ...]
    lanes: tuple[int, ...]
    samples: int = 1

    @classmethod
    def of(cls, sizes: tuple[int, ...], most: int = 1) -> "Tiles":
        lanes, left, rank = [], THREADS, len(sizes)
        for k, size in enumerate(reversed(sizes)):
            row = LANES if k == 0 and rank > 1 else left
            count = min(left, row, 1 << (size - 1).bit_length()) if k < 3 else 1
            lanes.append(count)
            left //= count
        samples = 1
        while (
            2 * samples <= most
            and math.prod(sizes) >= 2 * samples * LEAST_THREADS
            and sizes[-1] >= 2 * samples * lanes[0]
        ):
            samples *= 2
        return cls(sizes, tuple(reversed(lanes)), samples)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of tiles along each axis."""
        *lanes, last = self.lanes or (1,)
        return tuple(-(-n // m) for n, m in zip(self.sizes, (*lanes, last * self.samples)))

    @property
    def num_blocks(self) -> int:
        return math.prod(self.counts)

    @property
    def num_threads(self) -> int:
        """The threads of a block, whole warps."""
        return -(-math.prod(self.lanes) // LANES) * LANES

    def statements(self) -> list[str]:
        """The index of a thread's sample on each axis, `i0` and so on, and whether there is one."""
        lines, block, lane = [], "blockIdx.x", "threadIdx.x"
        block_divisor, lane_divisor, inside = 1, 1, []
        for k in reversed(range(len(self.sizes))):
            count, lanes = self.counts[k], self.lanes[k]
            tile = f"({block} / {block_divisor} % {count})" if count > 1 else "0"
            own = f"(int)({lane} / {lane_divisor} % {lanes})" if lanes > 1 else "0"
            steps = self.samples if k == len(self.sizes) - 1 else 1
            then = f" + step * {lanes}" if steps > 1 else ""
            lines.append(f"const int i{k} = (int){tile} * {lanes * steps} + {own}{then};")
            if count * lanes * steps > self.sizes[k]:
                inside.append(f"i{k} < {self.sizes[k]}")
            block_divisor, lane_divisor = block_divisor * count, lane_divisor * lanes
        if lane_divisor < self.num_threads:
            inside.append(f"threadIdx.x < {lane_divisor}")
        return [*lines, f"const bool is_sample = {' && '.join(inside) or 'true'};"]


class Laid(NamedTuple):
    """How an array of the grid lies in memory.

    Attributes:
        steps: for each axis of the grid, the distance of two samples, 0 if they share the array.
        shape, strides: of the numbers of one sample.
        wide: whether places in the array need 64 bits.
    """

    steps: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    wide: bool

    @classmethod
    def of(cls, shape: tuple[int, ...], places: tuple[int, ...]) -> "Laid":
        strides = strides_of(shape)
        own = [k for k in range(len(shape)) if k not in places]
        steps = tuple(strides[p] if shape[p] > 1 else 0 for p in places)
        return cls(steps, tuple(shape[k] for k in own), tuple(strides[k] for k in own), math.prod(shape) >= 2**31)

    def part(self, array: str, dtype: np.dtype, index: Sequence[jax.Array], token: Any = None) -> Part:
        """The numbers of the sample at an index."""
        first = tuple((i, step) for i, step in zip(index, self.steps) if step)
        return Part(array, np.dtype(dtype), self.shape, self.strides, first, wide=self.wide, token=token)

    @property
    def is_loaded(self) -> bool:
        return math.prod(self.shape) <= MOST_LOADED

    @property
    def place(self) -> str:
        """The place of a sample's first number, in C++."""
        pairs = [(f"i{k}", step) for k, step in enumerate(self.steps) if step]
        return " + ".join(terms_of([i for i, _ in pairs], [step for _, step in pairs], self.wide)) or "0"


def samples_kernel(
    *operands: jax.Array, program: Program, sizes: tuple[int, ...], places: Any, result_places: Any, wanted: Any = ()
) -> list[jax.Array]:
    """`compute.programs.samples_by_vmap` as a kernel."""
    del wanted
    laid = [Laid.of(a.shape, p) for a, p in zip(operands, places)]
    dtypes = [a.dtype for a in operands]
    tiles = Tiles.of(sizes, MOST_SAMPLES if sizes else 1)

    def thread(*index: jax.Array) -> list[jax.Array]:
        parts = [one.part(f"a{k}", dtypes[k], index) for k, one in enumerate(laid)]
        args = [p.load() if one.is_loaded else p for p, one in zip(parts, laid)]
        out = sites.run(program.closed, args)
        return [sites.loaded(a, "a result") for a in out]

    emitter = Emitter()
    with emitter.scope() as lines:
        values = emit(emitter, thread, len(sizes))
        results = [shape_of(sizes, a, p) for a, p in zip(program.results, result_places)]
        for k, (names, a, p) in enumerate(zip(values, results, result_places)):
            emitter.lines += stores(f"r{k}", Laid.of(a.shape, p), names, a.dtype)
    body = [*tiles.statements(), "if (is_sample) {", *lines, "}"]
    if tiles.samples > 1:
        body = ["#pragma unroll", f"for (int step = 0; step < {tiles.samples}; step++) {{", *body, "}"]
    return list(run_text("fused_samples", emitter, body, tiles, operands, results, {}))


def emit(emitter: Emitter, thread: Any, rank: int) -> list[Names]:
    """The results of a thread's function of the index of its sample."""
    index = [(np.array(f"i{k}", object), np.dtype(np.int32)) for k in range(rank)]
    with_indices_kept = emitter.keeps_indices
    emitter.keeps_indices = True
    try:
        return emitter.call(thread, *index)
    except UnknownPrimitive as reason:
        where = f" ({reason.line})" if reason.line else ""
        raise RefusedProgram(f"{reason}{where}") from reason
    finally:
        emitter.keeps_indices = with_indices_kept


def shape_of(sizes: Sequence[int], aval: Any, places: Sequence[int]) -> jax.ShapeDtypeStruct:
    around, at = iter(aval.shape), dict(zip(places, sizes))
    rank = len(sizes) + len(aval.shape)
    return jax.ShapeDtypeStruct(tuple(at[k] if k in at else next(around) for k in range(rank)), aval.dtype)


def stores(array: str, laid: Laid, names: Names, dtype: np.dtype) -> list[str]:
    """The statements that store a sample's numbers."""
    c_type, count = C_TYPES[np.dtype(dtype).name], names.size
    flat = [str(n) for n in names.ravel()]
    if laid.strides == strides_of(laid.shape) and count:
        width = count * np.dtype(dtype).itemsize
        aligned = width in WIDTHS and all(step % count == 0 for step in laid.steps)
        store = "store_aligned_row" if aligned else "store_row"
        return [f"{store}({array} + ({laid.place}), Row<{c_type}, {count}>{{{{{', '.join(flat)}}}}});"]
    places = (sum(i * s for i, s in zip(at, laid.strides)) for at in np.ndindex(laid.shape))
    return [f"{array}[{laid.place} + {place}] = {name};" for place, name in zip(places, flat)]


def adjoint_kernel(
    *args: jax.Array,
    program: Program,
    sizes: tuple[int, ...],
    places: Any,
    result_places: Any,
    linear: tuple[int, ...],
    shapes: Sequence[tuple[int, ...]],
) -> list[jax.Array]:
    """`compute.programs.adjoint_by_vmap` as a kernel.

    Numbers of whole arrays are added in memory. Few numbers that samples share are added up in each warp, and then
    by XLA.
    """
    others = [k for k in range(len(places)) if k not in linear]
    count = len(others)
    dtypes = [a.dtype for a in program.arguments]
    laid = {k: Laid.of(a.shape, places[k]) for k, a in zip(others, args)}
    laid |= {k: Laid.of(shape, places[k]) for k, shape in zip(linear, shapes)}
    of_values = [Laid.of(a.shape, p) for a, p in zip(args[count:], result_places)]
    tiles = Tiles.of(sizes)
    tokens = [k for k in linear if not laid[k].is_loaded]
    if any(dtypes[k].itemsize > 4 for k in tokens):
        raise UnknownPrimitive("gradients of whole arrays of 64-bit numbers have no rule")
    numbers = [k for k in linear if laid[k].is_loaded]

    def thread(*index: jax.Array) -> list[jax.Array]:
        given = {k: laid[k].part(f"a{n}", dtypes[k], index) for n, k in enumerate(others)}
        given = {k: part.load() if laid[k].is_loaded else part for k, part in given.items()}
        values = [one.part(f"a{count + n}", args[count + n].dtype, index).load() for n, one in enumerate(of_values)]

        def of_linear(tokens_now: list[Any], numbers_now: list[Any]) -> list[jax.Array]:
            known = dict(given) | dict(zip(numbers, numbers_now))
            for k, token in zip(tokens, tokens_now):
                sums = laid[k].part(f"s{k}", np.dtype(np.float32), index, token)
                known[k] = sums.replace(returned=np.dtype(dtypes[k]))
            return [
                sites.loaded(a, "a result") for a in sites.run(program.closed, [known[k] for k in range(len(places))])
            ]

        types = [jax.ShapeDtypeStruct((), np.float32) for _ in tokens]
        types_of_numbers = [jax.ShapeDtypeStruct(program.arguments[k].shape, dtypes[k]) for k in numbers]
        of_tokens, of_numbers = jax.linear_transpose(of_linear, types, types_of_numbers)(values)
        return [*of_numbers, *of_tokens]

    emitter = Emitter()
    with emitter.scope() as lines:
        found = emit(emitter, thread, len(sizes))[: len(numbers)]
    head, tail, results, finish = list[str](), list[str](), list[jax.ShapeDtypeStruct](), list[Any]()
    for n, (k, names) in enumerate(zip(numbers, found)):
        shared = [axis for axis in range(len(sizes)) if shapes[linear.index(k)][places[k][axis]] == 1 != sizes[axis]]
        tiled = [axis for axis in range(len(sizes)) if tiles.lanes[axis] > 1]
        dtype = dtypes[k]
        if not shared:
            laid_k = laid[k]
            lines += stores(f"r{n}", laid_k, names, dtype)
            results.append(jax.ShapeDtypeStruct(shapes[linear.index(k)], dtype))
            finish.append(lambda x: x)
            continue
        if set(tiled) <= set(shared) and dtype == np.float32:
            variables = [f"sum{n}_{j}" for j in range(names.size)]
            head += [f"float {v} = 0;" for v in variables]
            lines += [f"{v} = {name};" for v, name in zip(variables, names.ravel())]
            warps = tiles.num_threads // LANES
            for _j, v in enumerate(variables):
                tail += [f"for (int k = 16; k > 0; k /= 2) {v} += of_lane_xor({v}, k);"]
            row = ", ".join(variables)
            tail += [
                f"if (threadIdx.x % {LANES} == 0) store_row(r{n} + ((int64)blockIdx.x * {warps} + threadIdx.x / "
                f"{LANES}) * {names.size}, Row<float, {names.size}>{{{{{row}}}}});"
            ]
            results.append(jax.ShapeDtypeStruct((*tiles.counts, warps, names.size), dtype))
            finish.append(
                functools.partial(summed_tiles, shared=shared, shape=shapes[linear.index(k)], places=places[k])
            )
            continue
        whole = shape_of(sizes, program.arguments[k], tuple(range(len(sizes))))
        lines += stores(f"r{n}", Laid.of(whole.shape, tuple(range(len(sizes)))), names, dtype)
        results.append(whole)
        finish.append(functools.partial(summed_samples, shared=shared, places=places[k]))
    starts, aliases = [], {}
    for k in tokens:
        shape = shapes[linear.index(k)]
        aliases[len(args) + len(starts)] = len(results)
        starts.append(jnp.zeros(shape, np.float32))
        results.append(jax.ShapeDtypeStruct(shape, np.float32))
        head.append(f"float* const s{k} = r{len(results) - 1};")
        finish.append(lambda x, dtype=dtypes[k]: x.astype(dtype))
    body = [*tiles.statements(), *head, "if (is_sample) {", *lines, "}", *tail]
    out = run_text("fused_adjoint", emitter, body, tiles, [*args, *starts], results, aliases)
    by_operand = dict(zip((*numbers, *tokens), (f(x) for f, x in zip(finish, out))))
    return [by_operand[k] for k in linear]


def summed_tiles(x: jax.Array, *, shared: Sequence[int], shape: Sequence[int], places: Sequence[int]) -> jax.Array:
    """The sums of samples, from those of warps."""
    rank = x.ndim - 2
    along = (*shared, rank)
    return jnp.moveaxis(
        jnp.sum(x, along, keepdims=True).reshape(
            *(1 if k in shared else x.shape[k] for k in range(rank)),
            *(n for p, n in enumerate(shape) if p not in places),
        ),
        range(rank),
        places,
    )


def summed_samples(x: jax.Array, *, shared: Sequence[int], places: Sequence[int]) -> jax.Array:
    return jnp.moveaxis(jnp.sum(x, tuple(shared), keepdims=True), range(len(places)), places)


def run_text(
    name: str,
    emitter: Emitter,
    body: Sequence[str],
    tiles: Tiles,
    args: Sequence[jax.Array],
    results: Sequence[jax.ShapeDtypeStruct],
    aliases: dict[int, int],
) -> Sequence[jax.Array]:
    """Runs a kernel, whose parameters are `a0` and so on, then the results `r0` and so on."""
    type_of = lambda a: C_TYPES[np.dtype(a.dtype).name] if np.dtype(a.dtype).name in C_TYPES else unknown(a.dtype)
    given = [
        f"{'' if k in aliases else 'const '}{type_of(a)}* {'' if k in aliases else '__restrict__ '}a{k}"
        for k, a in enumerate(args)
    ]
    given += [f"{type_of(a)}* {'' if k in aliases.values() else '__restrict__ '}r{k}" for k, a in enumerate(results)]
    text = "".join(f"  {line}\n" for line in body)
    tables = "".join(f"{table}\n" for table in emitter.tables)
    include = read_source(WARP).replace('#include "trace/scalars.cuh"\n', "")
    source = (
        f"{scalars()}\n{include}\n{tables}\n"
        f'extern "C" __global__ void __launch_bounds__({tiles.num_threads}) {name}({", ".join(given)}) {{\n{text}}}\n'
    )
    kernel = launch.Kernel(source, name, tiles.num_blocks, tiles.num_threads)
    return launch.run(kernel, args, results, aliases)


def unknown(dtype: np.dtype) -> str:
    raise UnknownPrimitive(f"numbers of {dtype} have no type of C")
