"""The kernels of programs of one sample, and of their transposes. A thread computes one sample."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.programs import of_one_sample, type_on_grid
from ...describe.program import Program
from ...describe.unit import UnitRead
from ..build import launch
from ..build.source import read_source, scalars
from ..trace.elementwise import C_TYPES
from ..trace.emitter import Emitter
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
from .cotangents import FLOAT, Cotangent, added, summed_by_xla, summed_in_lanes, summed_in_warps
from .parts import LOAD_BYTES, Laid, stores
from .tiles import Tiles

# The most samples of a thread.
MOST_SAMPLES = 4
# The most if a texture unit reads.
MOST_OF_UNIT = 2
# A thread computes so many adjacent samples if samples add to whole arrays, as these often share texels.
MOST_ADDED = 8
# Lanes move the rows of at most so many reads to each other, if a thread keeps these from sample to sample.
MOST_MOVED = 2
WARP = "trace/warp.cuh"


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
