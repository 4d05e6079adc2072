"""The kernels of programs of one sample, and of their transposes. A thread computes one sample."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.programs import of_one_sample, type_on_grid
from ...describe.program import Program
from ...describe.unit import UnitRead
from ..build import launch
from ..build.launch import LANES
from ..build.source import read_source, scalars
from ..scatter.crowds import num_copies
from ..trace.elementwise import C_TYPES
from ..trace.emitter import Emitter
from ..trace.indexing import terms_of
from ..trace.statements import (
    FEW_CARRIED,
    MOST_MERGED,
    Names,
    PrimitiveOfCaller,
    RefusedProgram,
    UnknownPrimitive,
    c_type_of,
)
from . import sites
from .channels import adjoint_in_parts, divided, samples_in_parts
from .parts import LOAD_BYTES, Part, is_aligned, strides_of
from .tiles import Tiles

# The most samples of a thread.
MOST_SAMPLES = 4
# The most if a texture unit reads.
MOST_OF_UNIT = 2
# A thread computes so many adjacent samples if samples add to whole arrays, as these often share texels.
MOST_ADDED = 8
# Lanes move the rows of at most so many reads to each other, if a thread keeps these from sample to sample.
MOST_MOVED = 2
# Arrays of more numbers are read where they are in memory; a thread loads all numbers of smaller ones.
MOST_LOADED = 16
WARP = "trace/warp.cuh"
FLOAT = np.dtype(np.float32)


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


def fused_samples(
    *operands: jax.Array, program: Program, sizes: tuple[int, ...], places: Any, result_places: Any, wanted: Any = ()
) -> list[jax.Array]:
    """`compute.programs.samples_by_vmap` as a kernel."""
    del wanted
    check_types([*operands, *program.results])
    # A thread stores at least the channels of one load.
    parts = divided(program, max(LOAD_BYTES // max(a.dtype.itemsize, 2) for a in program.results))
    if parts is not None:
        whole = [type_on_grid(sizes, a, p) for a, p in zip(program.results, result_places)]
        static = {"sizes": sizes, "places": places, "result_places": result_places}
        return samples_in_parts(fused_samples, parts, operands, whole, **static)
    # A thread computes a few samples, fewer if the texture unit is what they wait for.
    laid = [Laid.of(a.shape, p) for a, p in zip(operands, places)]
    dtypes = [a.dtype for a in operands]
    most = MOST_OF_UNIT if program.holds("unit_read") else MOST_SAMPLES
    tiles = Tiles.of(sizes, most if sizes else 1)

    # The thread's function: small operands are loaded at once, others where an equation reads them.
    def thread(*index: jax.Array) -> list[jax.Array]:
        parts = [one.part(f"a{k}", dtypes[k], index).replace(repeats=False) for k, one in enumerate(laid)]
        return numbers_of(program, [p.load() if one.is_loaded else p for p, one in zip(parts, laid)])

    # Its statements, and behind them the stores of its results.
    emitter = Emitter()
    with emitter.scope() as lines:
        values = emit(emitter, thread, len(sizes))
        results = [type_on_grid(sizes, a, p) for a, p in zip(program.results, result_places)]
        for k, (names, a, p) in enumerate(zip(values, results, result_places)):
            emitter.lines += stores(f"r{k}", Laid.of(a.shape, p), names, a.dtype)
    # They stand in a loop over the samples of the thread.
    before, in_loop = tiles.statements()
    body = [*before, *tiles.loop(in_loop, lines)]
    return list(run_text("fused_samples", emitter, body, tiles, operands, results, {}))


def unit_read(handle: jax.Array, *operands: jax.Array, read: UnitRead) -> jax.Array:
    """A read by a texture object, as a program of one sample. The kernel does not get the texels."""
    given, static = of_one_sample(handle, operands[: read.num_numbers], read)
    return fused_samples(*given, **static)[0]


def check_types(arrays: Sequence[Any]) -> None:
    """Refuses arrays of numbers that C lacks, such as complex ones."""
    for a in arrays:
        if getattr(a.dtype, "name", "") not in C_TYPES:
            raise RefusedProgram(f"an array of {a.dtype} has no type of C")


def emit(emitter: Emitter, thread: Any, rank: int) -> list[Names]:
    """The results of a thread's function of the index of its sample."""
    index = [(np.array(f"i{k}", object), np.dtype(np.int32)) for k in range(rank)]
    emitter.keeps_indices = True  # a caller's indices may be out of bounds
    try:
        return emitter.call(thread, *index)
    except PrimitiveOfCaller:  # of a coordinate function, for which the library has made the program
        raise
    except UnknownPrimitive as reason:
        where = f" ({reason.line})" if reason.line else ""
        raise RefusedProgram(f"{reason}{where}") from reason


def numbers_of(program: Program, args: Sequence[Any]) -> list[jax.Array]:
    """The results of a program whose arguments may be parts, as numbers of a thread."""
    return [sites.loaded(a, "a result") for a in sites.run(program.closed, args)]


def stores(array: str, laid: Laid, names: Names, dtype: np.dtype) -> list[str]:
    """The statements that store a sample's numbers."""
    c_type, count = c_type_of(np.dtype(dtype)), names.size
    flat = [str(n) for n in names.ravel()]
    if laid.strides == strides_of(laid.shape) and count:
        store = "store_aligned_row" if is_aligned(count, np.dtype(dtype), laid.steps) else "store_row"
        return [f"{store}({array} + ({laid.place}), Row<{c_type}, {count}>{{{{{', '.join(flat)}}}}});"]
    places = (sum(i * s for i, s in zip(at, laid.strides)) for at in np.ndindex(laid.shape))
    return [f"{array}[{laid.place} + {place}] = {name};" for place, name in zip(places, flat)]


class Cotangent(NamedTuple):
    """How a kernel returns the cotangent of an operand.

    Attributes:
        result: the array that the kernel fills.
        finish: makes the cotangent from that array.
        before, at_sample, after: statements before, at and after the computation of a sample.
        adds: whether the array begins with zeros, to which samples add.
    """

    result: jax.ShapeDtypeStruct
    finish: Callable[[jax.Array], jax.Array]
    before: Sequence[str] = ()
    at_sample: Sequence[str] = ()
    after: Sequence[str] = ()
    adds: bool = False


def fused_adjoint(
    *args: jax.Array,
    program: Program,
    sizes: tuple[int, ...],
    places: Sequence[tuple[int, ...]],
    result_places: Sequence[tuple[int, ...]],
    linear: tuple[int, ...],
    shapes: Sequence[tuple[int, ...]],
    from_end: int = 2,
) -> list[jax.Array]:
    """`compute.programs.adjoint_by_vmap` as a kernel.

    Args:
        from_end: the axis along which a thread computes several samples, counted from the end of the grid.
    """
    check_types([*args, *program.arguments])
    # Lanes merge rows of few channels alone.
    parts = divided(program, MOST_MERGED[1])
    if parts is not None:
        static = {"sizes": sizes, "places": places, "result_places": result_places, "linear": linear, "shapes": shapes}
        return adjoint_in_parts(functools.partial(fused_adjoint, from_end=3), parts, args, **static)
    # The operands, those in which the program is linear, and the cotangents of results.
    others, dtypes = [k for k in range(len(places)) if k not in linear], [a.dtype for a in program.arguments]
    shape_of = dict(zip(linear, shapes)) | {k: a.shape for k, a in zip(others, args)}
    laid = {k: Laid.of(shape_of[k], p) for k, p in enumerate(places)}
    values = [*zip((f"a{k}" for k in range(len(others), len(args))), args[len(others) :], result_places, strict=True)]
    # Cotangents of whole arrays are added up in memory, those of a few numbers are numbers of a thread.
    numbers = [k for k in linear if laid[k].is_loaded]
    tokens = [k for k in linear if not laid[k].is_loaded]
    tiles = Tiles.of(sizes, MOST_ADDED if tokens and len(sizes) >= from_end else 1, from_end)
    # A block has one part of an array, or the place of a sample's part depends on the sample.
    of_block = {k: tiles.are_shared([k for k, step in enumerate(laid[k].steps) if not step]) for k in tokens}
    if any(dtypes[k].itemsize > 4 for k in tokens):
        raise RefusedProgram("gradients of whole arrays of 64-bit numbers have no rule")

    # The thread's function: the transpose of the program at the operands of a sample.
    def thread(*index: jax.Array) -> list[jax.Array]:
        given = {k: laid[k].part(f"a{n}", dtypes[k], index) for n, k in enumerate(others)}
        given = {k: part.load() if laid[k].is_loaded else part for k, part in given.items()}
        cotangents = [Laid.of(a.shape, p).part(name, a.dtype, index).load() for name, a, p in values]

        def of_linear(numbers_now: list[jax.Array], tokens_now: list[jax.Array]) -> list[jax.Array]:
            known: dict[int, Any] = given | dict(zip(numbers, numbers_now))
            for k, token in zip(tokens, tokens_now):
                part = laid[k].part(f"sum{k}", FLOAT, () if of_block[k] else index, token)
                known[k] = part.replace(returned=dtypes[k])
            return numbers_of(program, [known[k] for k in range(len(places))])

        types = [jax.ShapeDtypeStruct(program.arguments[k].shape, dtypes[k]) for k in numbers]
        types_of_tokens = [jax.ShapeDtypeStruct((), FLOAT)] * len(tokens)
        return [a for part in jax.linear_transpose(of_linear, types, types_of_tokens)(cotangents) for a in part]

    # Its statements. Additions of several samples to one place may wait in variables of the thread.
    emitter = Emitter()
    with emitter.scope() as lines:
        emitter.together, emitter.carries = "together", tiles.samples > 1
        found = emit(emitter, thread, len(sizes))
    # How samples that share an argument add up its cotangent: by the nearest threads that have all of them.
    ways: dict[int, Cotangent] = {}
    for n, (k, names) in enumerate(zip((*numbers, *tokens), found, strict=True)):
        shared = [axis for axis, place in enumerate(places[k]) if shape_of[k][place] == 1 != sizes[axis]]
        whole = jax.ShapeDtypeStruct(shape_of[k], dtypes[k])
        if k in tokens:
            ways[k] = added(emitter, f"sum{k}", f"r{n}", laid[k].place if of_block[k] else "0", math.prod(sizes), whole)
        elif not shared:
            ways[k] = Cotangent(whole, lambda x: x, at_sample=stores(f"r{n}", laid[k], names, dtypes[k]))
        elif dtypes[k].itemsize <= 4 and tiles.are_shared(shared):
            ways[k] = summed_in_warps(f"r{n}", names, tiles, shared, places[k], whole)
        elif dtypes[k].itemsize <= 4 and tiles.are_along_lanes(shared):
            ways[k] = summed_in_lanes(f"r{n}", names, tiles.lanes[-1], sizes[-1], laid[k], whole)
        else:
            ways[k] = summed_by_xla(f"r{n}", names, sizes, shared, places[k], program.arguments[k])
    # The body of the kernel: what stands before all samples, the loop over samples, and what follows them.
    before, in_loop = tiles.statements()
    before += [line for way in ways.values() for line in way.before]
    if tokens:
        before += [one.declaration for one in emitter.carried]
        before.append(f"constexpr bool {FEW_CARRIED} = {str(len(emitter.carried) <= MOST_MOVED).lower()};")
        in_loop.append("const bool together = !any_lane(!is_sample);")
    at_sample = [line for way in ways.values() for line in way.at_sample]
    loop = tiles.loop(in_loop, lines, at_sample, unrolled=False)
    after = [*(one.addition for one in emitter.carried), *(line for way in ways.values() for line in way.after)]
    body = [*before, *loop, *after]
    # Arrays that samples add to begin as zeros, and are the kernel's results in place.
    results = [way.result for way in ways.values()]
    sums = [n for n, way in enumerate(ways.values()) if way.adds]
    starts = [jnp.zeros(results[n].shape, FLOAT) for n in sums]
    aliases = {len(args) + k: n for k, n in enumerate(sums)}
    filled = run_text("fused_adjoint", emitter, body, tiles, [*args, *starts], results, aliases)
    cotangents = {k: way.finish(x) for (k, way), x in zip(ways.items(), filled)}
    return [cotangents[k] for k in linear]


def added(
    emitter: Emitter, name: str, array: str, place: str, num_samples: int, whole: jax.ShapeDtypeStruct
) -> Cotangent:
    """The cotangent of a whole array, to which samples add in float32, in any order.

    Blocks add to copies of a small array, and rarely meet. What a thread has added up in variables, warps add up.
    """
    # Copies of a small array keep blocks from waiting for each other.
    size = math.prod(whole.shape)
    copies = num_copies(num_samples / size, size) if size else 1
    copy = f" + (int64)(blockIdx.x % {copies}) * {size}" if copies > 1 else ""
    # What stays in variables of a thread until its last sample.
    sums = {at: variable for (of, at), variable in sorted(emitter.sums.items()) if of == name}
    count, places, variables = (len(sums), *(", ".join(map(str, some)) for some in (sums, sums.values())))
    after = [
        "{",
        f"const int places[{count}] = {{{places}}};",
        f"float sums[{count}] = {{{variables}}};",
        f"add_sums({name}, places, sums);",
        "}",
    ]
    return Cotangent(
        jax.ShapeDtypeStruct((copies, *whole.shape), FLOAT),
        lambda x: jnp.sum(x, 0).astype(whole.dtype),
        before=[f"float* const {name} = {array}{copy} + {place};", *(f"float {v} = 0;" for v in sums.values())],
        after=after if sums else (),
        adds=True,
    )


def summed_in_warps(
    array: str, names: Names, tiles: Tiles, shared: Sequence[int], places: Sequence[int], whole: jax.ShapeDtypeStruct
) -> Cotangent:
    """The cotangent of a few numbers that all samples of a tile share: warps store sums, and XLA adds these up."""
    # A thread keeps its own sums, the lanes of a warp exchange theirs, and the first lane stores the total.
    count, warps = names.size, tiles.num_threads // LANES
    sums = [f"{array}_{k}" for k in range(count)]
    narrow = "" if whole.dtype == FLOAT else f"converted<float, {c_type_of(whole.dtype)}>"
    after = [f"for (int k = {LANES // 2}; k > 0; k /= 2) {name} += of_lane_xor({name}, k);" for name in sums]
    row = f"((int64)blockIdx.x * {warps} + threadIdx.x / {LANES}) * {count}"
    store = f"store_row({array} + {row}, Row<float, {count}>{{{{{', '.join(sums)}}}}});"

    # XLA adds up the totals of warps, along the axes that the samples share.
    def finish(x: jax.Array) -> jax.Array:
        kept = [1 if axis in shared else n for axis, n in enumerate(tiles.counts)]
        own = [n for place, n in enumerate(whole.shape) if place not in places]
        total = jnp.sum(x, (*shared, len(kept)), keepdims=True).reshape(*kept, *own)
        return jnp.moveaxis(total, range(len(kept)), places).astype(whole.dtype)

    return Cotangent(
        jax.ShapeDtypeStruct((*tiles.counts, warps, count), FLOAT),
        finish,
        before=[f"float {name} = 0;" for name in sums],
        at_sample=[f"{name} += {narrow}({value});" for name, value in zip(sums, names.ravel())],
        after=[*after, f"if (threadIdx.x % {LANES} == 0) {store}"],
    )


def summed_in_lanes(
    array: str, names: Names, lanes: int, count: int, laid: Laid, whole: jax.ShapeDtypeStruct
) -> Cotangent:
    """The cotangent of a few numbers that adjacent lanes share: these add them up, and the first of them stores them.

    The first `count` of a group of lanes share numbers. They have samples, all or none, and so meet in the branch of
    samples. Behind it, all lanes of a warp would have to meet, and a driver's compiler was seen to fail there if some
    have no sample.
    """
    sums = [f"{array}_{k}" for k in range(names.size)]
    narrow = "" if whole.dtype == FLOAT else f"converted<float, {c_type_of(whole.dtype)}>"
    added = [
        f"{name} += of_near_lane_xor({name}, {bits}, {lanes}, {count});"
        for bits in (1 << k for k in range(lanes.bit_length() - 1))
        for name in sums
    ]
    return Cotangent(
        jax.ShapeDtypeStruct(whole.shape, FLOAT),
        lambda x: x.astype(whole.dtype),
        at_sample=[
            *(f"float {name} = {narrow}({value});" for name, value in zip(sums, names.ravel())),
            *added,
            f"if (threadIdx.x % {lanes} == 0) {{",
            *stores(array, laid, np.array(sums, object).reshape(names.shape), FLOAT),
            "}",
        ],
    )


def summed_by_xla(
    array: str, names: Names, sizes: tuple[int, ...], shared: Sequence[int], places: Sequence[int], aval: Any
) -> Cotangent:
    """The cotangent of a few numbers that some samples of a tile share: all are stored, and XLA adds them up."""
    in_front = tuple(range(len(sizes)))
    stored = type_on_grid(sizes, aval, in_front)

    def finish(x: jax.Array) -> jax.Array:
        return jnp.moveaxis(jnp.sum(x, tuple(shared), keepdims=True), in_front, places)

    at_sample = stores(array, Laid.of(stored.shape, in_front), names, stored.dtype)
    return Cotangent(stored, finish, at_sample=at_sample)


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
    # The parameters. What the kernel adds to is given and returned in one array, so two names mean one memory.
    type_of = lambda a: c_type_of(np.dtype(a.dtype))
    given = [
        f"{'' if k in aliases else 'const '}{type_of(a)}* {'' if k in aliases else '__restrict__ '}a{k}"
        for k, a in enumerate(args)
    ]
    given += [f"{type_of(a)}* {'' if k in aliases.values() else '__restrict__ '}r{k}" for k, a in enumerate(results)]
    # The source: scalars, the headers of warps, tables and functions that the emitter has collected, the kernel.
    text = "".join(f"  {line}\n" for line in body)
    tables = "".join(f"{table}\n" for table in emitter.tables)
    include = read_source(WARP).replace('#include "trace/scalars.cuh"\n', "")
    source = (
        f"{scalars()}\n{include}\n{tables}{''.join(emitter.functions.values())}\n"
        f'extern "C" __global__ void __launch_bounds__({tiles.num_threads}) {name}({", ".join(given)}) {{\n{text}}}\n'
    )
    kernel = launch.Kernel(source, name, tiles.num_blocks, tiles.num_threads)
    return launch.run(kernel, args, results, aliases)
