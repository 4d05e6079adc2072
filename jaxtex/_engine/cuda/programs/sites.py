"""Programs of one sample without whole arrays: each place where a program reads one becomes a load from memory.

A whole array is a `Part`: where it is in memory, and which of its elements are meant. Slices, reshapes and parts at
computed indices are other parts, and cost nothing. A read of a texture, or of elements at computed indices, is a load.
A load is linear in a token, a number that stands for the array. So JAX transposes programs of loads to programs of
additions, whatever the loops and branches around them.
"""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in_params

from ...._jax.calls import called, exactly
from ...._jax.primitives import MEANINGS, as_tuple
from ...._jax.versions import generator_of_key, line_of, sizes_of_scan
from ...compute.operators import result, value
from ...describe.program import CONTROL, MOST_NUMBERS, bound, equations, run_equations
from ...describe.spec import ReadSpec
from ...describe.storage import WHOLE
from ...walk.known_taps import read_inside, taps_are_inside
from ...walk.texel_order import flat_sizes
from ...walk.texel_walk import TexelAddress
from ..trace.branches import MOST_UNROLLED
from ..trace.indexing import fill_of
from ..trace.statements import UnknownPrimitive, aval_of
from .parts import (
    Part,
    broadcast,
    clipped,
    dynamic_slice,
    flipped,
    reshaped,
    sliced,
    strides_of,
    transposed,
    with_parts,
)

# A read of fewer taps is not asked whether all of them are inside: that takes longer than it spares.
LEAST_TAPS = 4
# Primitives that return their arguments.
STOPPED = ("materialized", "optimization_barrier", "copy", "pvary", "pcast")

# The equations of a program whose arguments may be parts


def run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a program; its arguments, and results that are large, may be parts."""

    def one(eqn: JaxprEqn, args: list[Any]) -> Sequence[Any]:
        try:
            return equation(eqn, args, closed.jaxpr)
        except UnknownPrimitive as reason:
            reason.line = reason.line or line_of(eqn)
            raise

    return run_equations(closed.jaxpr, closed.consts, args, one)


def equation(eqn: JaxprEqn, args: list[Any], within: Jaxpr) -> Sequence[Any]:
    name = eqn.primitive.name
    # Equations that are the same for numbers and for parts of arrays.
    if name in STOPPED:
        return args
    if name in OF_KEYS:
        return [OF_KEYS[name](eqn, args)]
    if name == "unit_read":
        return [unit_read(eqn, args)]
    # Of numbers alone: calls are entered, primitives of the library become array operations, others are bound.
    if not any(isinstance(a, Part | Key) for a in args):
        if name == "texture_unit_read":
            return [exact_read(eqn, args)]
        if eqn.primitive in MEANINGS and name not in ("straight_through", "where_needed"):
            return by_meaning(inspect.unwrap(eqn.primitive.impl), eqn, args)  # of numbers: by array operations
        if name != "jit" and not any(inner.primitive in MEANINGS for inner in equations_in(eqn)):
            return bound(eqn, args, within)
    # Of parts: calls are entered with them.
    body = called(eqn)
    if body is not None:
        if name in ("checkpoint", "remat2"):
            # Parts are no arrays, so the checkpoint gets what they hold.
            function, leaves = with_parts(lambda *args: run(body, args), args)
            return jax.checkpoint(function)(*leaves)
        return run(body, args)
    if name not in CONTROL and any(isinstance(a, Key) for a in args):
        return of_keys(eqn, args, within)
    # A rule reads or moves parts in place. Without one, a small part is loaded.
    if name in RULES:
        out = RULES[name](eqn, args)
        if out is not None:
            return out if isinstance(out, list | tuple) else [out]
    if name == "texture_unit_read":
        return [exact_read(eqn, args)]
    if eqn.primitive in MEANINGS:
        return by_meaning(MEANINGS[eqn.primitive], eqn, args)
    return bound(eqn, [loaded(a, name) for a in args], within)


def equations_in(eqn: JaxprEqn) -> Iterator[JaxprEqn]:
    """The equations of the programs that an equation runs."""
    return (inner for program in jaxprs_in_params(eqn.params) for inner in equations(program))


def loaded(a: Any, name: str) -> Any:
    """A small part as numbers of the thread."""
    if not isinstance(a, Part):
        return a
    if a.size > MOST_NUMBERS:
        raise UnknownPrimitive(f"{name} of a whole array of {a.size} numbers has no rule")
    return a.load()


def by_meaning(meaning: Callable[..., Any], eqn: JaxprEqn, args: list[Any]) -> list[Any]:
    """The results of a primitive that stands for a function of other primitives."""
    avals = [jax.ShapeDtypeStruct(aval_of(v).shape, aval_of(v).dtype) for v in eqn.invars]
    function = lambda *args: as_tuple(meaning(*args, **eqn.params))
    return run(jax.make_jaxpr(function)(*avals), args)


def gather(eqn: JaxprEqn, args: list[Any]) -> jax.Array | Part | None:
    """Parts at computed indices: each is a load."""
    part, indices = args
    if isinstance(indices, Part):
        indices = loaded(indices, "gather")
    if not isinstance(part, Part):
        return None
    # The shape of the result, and the last place at which a slice begins.
    numbers, sizes, mode = eqn.params["dimension_numbers"], eqn.params["slice_sizes"], eqn.params["mode"]
    out = aval_of(eqn.outvars[0])
    batch_shape = tuple(n for axis, n in enumerate(out.shape) if axis not in numbers.offset_dims)
    skipped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    last = [n - size for n, size in zip(part.shape, sizes)]
    if math.prod(out.shape) > MOST_NUMBERS:
        raise UnknownPrimitive(f"gather of {math.prod(out.shape)} numbers has no rule")
    fills = mode == jax.lax.GatherScatterMode.FILL_OR_DROP
    # Each place of the batch is a look of its own.
    rows = []
    for at in np.ndindex(*batch_shape):
        one, inside = part, None
        for axis, number in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims):
            one = one.moved(at[number], axis)
        for k, axis in enumerate(numbers.start_index_map):
            index = indices[(*at, k)]
            if fills:
                within = (index >= 0) & (index <= last[axis])
                inside = within if inside is None else inside & within
            one = one.moved(clipped(index, last[axis]), axis)
        # What is left of the part there is a row.
        kept = [axis for axis in range(part.ndim) if axis not in skipped]
        shape, strides = tuple(sizes[k] for k in kept), tuple(part.strides[k] for k in kept)
        row = one.replace(shape=shape, strides=strides).load(inside)
        rows.append(filled(row, inside, eqn.params["fill_value"]) if fills else row)
    values = jnp.stack(rows).reshape(*batch_shape, *(sizes[k] for k in range(part.ndim) if k not in skipped))
    # The axes of the batch stand where no axis of the parts stands.
    order = [k for k in range(len(out.shape)) if k not in numbers.offset_dims]
    return jnp.moveaxis(values, range(len(order)), order)


def filled(row: jax.Array, inside: jax.Array | None, fill: Any) -> jax.Array:
    """A row, with what JAX returns for parts outside."""
    return row if inside is None else jnp.where(inside, row, jnp.asarray(fill_of(row.dtype, fill), row.dtype))


# Reads of textures


def texture_read(eqn: JaxprEqn, args: list[Any]) -> list[jax.Array] | None:
    texels, *given = args
    params = eqn.params
    spec: ReadSpec = params["spec"]
    if not isinstance(texels, Part) or params["storage"] != WHOLE:
        return None
    given = [loaded(a, "texture_read") for a in given]
    return [over_batch(functools.partial(read_part, spec=spec), params["batch"], [texels, *given])]


def over_batch(function: Callable[..., jax.Array], batch: int, args: list[Any]) -> jax.Array:
    """`function` over leading axes, along which an argument has the batch size or 1."""
    if not batch:
        return function(*args)
    size = max(a.shape[0] for a in args)
    pick = lambda a, k: a.at(k, 0) if isinstance(a, Part) else a[k]
    rows = [over_batch(function, batch - 1, [pick(a, min(k, a.shape[0] - 1)) for a in args]) for k in range(size)]
    return jnp.stack(rows)


def read_part(texels: Part, *args: jax.Array, spec: ReadSpec) -> jax.Array:
    """The read of a texture in memory, as kernels of reads compute it."""
    # Texels must follow each other, as in a whole array, so that a flat index leads to them.
    color, operands = spec.color_and_operands(args)
    channels, sizes = texels.shape[-1], flat_sizes(spec.axes)
    *texel_strides, step = texels.strides
    pitch = texel_strides[-1]
    evenly = all(s == pitch * n for s, n in zip(texel_strides, strides_of(texels.shape[:-1])))
    if not evenly or (channels > 1 and step != 1):
        raise UnknownPrimitive("a read of texels that do not follow each other in memory has no rule")
    factors = [pitch * n for n in strides_of(sizes)]

    # A row of channels, at the place of the part plus that of the texel.
    def load_texel(address: TexelAddress) -> jax.Array:
        first = address._replace(further=0).flat_index
        shape = jnp.broadcast_shapes(*(jnp.shape(n) for n in first))
        offset = texels.offset + address.further * factors[-1]
        spread = tuple((jnp.broadcast_to(n, shape), factor) for n, factor in texels.first)
        row = texels.replace(first=(*spread, *zip(first, factors)), offset=offset)
        return row.row(channels, None if color is not None else address.inside)

    if color is not None:
        color = color.reshape(*[1] * len(spec.sample_shapes(operands)[0]), -1)

    def read(*operands: jax.Array, spec: ReadSpec = spec) -> jax.Array:
        return result(lambda coords: value(load_texel, coords, spec, color, for_channels=None), operands, spec)

    # In a loop, most samples have all taps inside, and one look at a coordinate spares a look at each tap.
    asks = texels.repeats and spec.num_taps >= LEAST_TAPS and not spec.summed_axes
    inside = read_inside(spec) if asks else None
    if inside is None:
        return read(*operands)
    are_inside = taps_are_inside(spec.coords(operands), inside.axes)
    return jax.lax.cond(jnp.all(are_inside), functools.partial(read, spec=inside), read, *operands)


def exact_read(eqn: JaxprEqn, args: list[Any]) -> jax.Array:
    """The read of a texture unit."""
    function, leaves = with_parts(lambda *args: by_meaning(MEANINGS[eqn.primitive], eqn, list(args))[0], args)
    return exactly(function, *leaves)


def unit_read(eqn: JaxprEqn, args: list[Any]) -> jax.Array:
    """The read of a texture object, which needs no texels."""
    used = args[: 1 + eqn.params["read"].num_numbers]
    return eqn.primitive.bind(*(loaded(a, "unit_read") for a in used), **eqn.params)


# Random numbers


@functools.partial(jax.tree_util.register_dataclass, data_fields=["data"], meta_fields=["generator"])
@dataclasses.dataclass(frozen=True)
class Key:
    """Keys of random numbers, by their bits: S + the shape of a key, uint32."""

    data: jax.Array
    generator: Any


def of_keys(eqn: JaxprEqn, args: list[Any], within: Jaxpr) -> list[Any]:
    """An equation that moves keys, such as one that takes one of several."""
    (generator,) = {a.generator for a in args if isinstance(a, Key)}
    flat = [a.data if isinstance(a, Key) else a for a in args]
    axes = [-1 if isinstance(a, Key) else None for a in args]
    out = jax.vmap(lambda *args: list(bound(eqn, args, within)), axes, -1)(*flat)
    return [Key(data, generator) for data in out]


def over_keys(key: Key, function: Callable[..., Any], *others: Any) -> Any:
    """`function` of each key, by its bits."""
    rank = len(key.generator.key_shape)
    for _ in range(key.data.ndim - rank):
        function = jax.vmap(function)
    return function(key.data, *others)


def random_bits(eqn: JaxprEqn, args: list[Any]) -> jax.Array:
    (key,), params = args, eqn.params
    draw = lambda data: key.generator.random_bits(data, params["bit_width"], params["shape"])
    return over_keys(key, draw)


def random_seed(eqn: JaxprEqn, args: list[Any]) -> Key:
    (seeds,), generator = args, eqn.params["impl"]
    function = generator.seed
    for _ in range(jnp.ndim(seeds)):
        function = jax.vmap(function)
    return Key(function(seeds), generator)


def random_fold_in(eqn: JaxprEqn, args: list[Any]) -> Key:
    key, number = args
    return Key(over_keys(key, key.generator.fold_in, number), key.generator)


def random_split(eqn: JaxprEqn, args: list[Any]) -> Key:
    (key,) = args
    return Key(over_keys(key, lambda data: key.generator.split(data, eqn.params["shape"])), key.generator)


def random_wrap(eqn: JaxprEqn, args: list[Any]) -> Key:
    return Key(loaded(args[0], "a key"), generator_of_key(aval_of(eqn.outvars[0]).dtype))


def random_unwrap(eqn: JaxprEqn, args: list[Any]) -> jax.Array:
    return args[0].data


OF_KEYS: dict[str, Callable[[JaxprEqn, list[Any]], Any]] = {
    f.__name__: f for f in (random_bits, random_seed, random_fold_in, random_split, random_wrap, random_unwrap)
}


# Loops and branches


def in_loop(args: list[Any]) -> list[Any]:
    return [a.in_loop() if isinstance(a, Part) else a for a in args]


def scan(eqn: JaxprEqn, args: list[Any]) -> list[Any]:
    params, body = eqn.params, eqn.params["jaxpr"]
    num_consts, num_carried = sizes_of_scan(params)
    consts, carry, rows = args[:num_consts], args[num_consts:][:num_carried], args[num_consts + num_carried :]
    carry = [loaded(a, "scan") for a in carry]
    if params["length"] > MOST_UNROLLED:
        consts, rows = in_loop(consts), in_loop(rows)
    numbers = jnp.arange(params["length"], dtype=jnp.int32)
    mapped = [a for a in rows if not isinstance(a, Part)]

    def turn(carry: list[Any], given: tuple[Any, list[Any]]) -> tuple[list[Any], list[Any]]:
        number, some = given
        rest = iter(some)
        at_turn = [a.at(number, 0) if isinstance(a, Part) else next(rest) for a in rows]
        out = [loaded(a, "scan") for a in run(body, [*consts, *carry, *at_turn])]
        return out[:num_carried], out[num_carried:]

    how = {"length": params["length"], "reverse": params["reverse"], "unroll": params["unroll"]}
    carry, stacked = jax.lax.scan(turn, carry, (numbers, mapped), **how)
    return [*carry, *stacked]


def while_loop(eqn: JaxprEqn, args: list[Any]) -> list[Any]:
    condition, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    of_condition, of_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    given = in_loop(args[:of_condition]), in_loop(args[of_condition:][:of_body])
    initial = [loaded(a, "while") for a in args[of_condition + of_body :]]
    return jax.lax.while_loop(
        lambda state: loaded(run(condition, [*given[0], *state])[0], "while"),
        lambda state: [loaded(a, "while") for a in run(body, [*given[1], *state])],
        initial,
    )


def cond(eqn: JaxprEqn, args: list[Any]) -> list[Any]:
    (which, *operands), branches = args, eqn.params["branches"]
    of = lambda branch: lambda *_: [loaded(a, "cond") for a in run(branch, operands)]
    return jax.lax.switch(which, [of(branch) for branch in branches])


def straight_through(eqn: JaxprEqn, args: list[Any]) -> list[Any]:
    return by_meaning(lambda *args, **_: eqn.params["value"](*args), eqn, args)


RULES: dict[str, Callable[[JaxprEqn, list[Any]], Any]] = {
    "slice": sliced,
    "transpose": transposed,
    "rev": flipped,
    "broadcast_in_dim": broadcast,
    "reshape": reshaped,
    "squeeze": reshaped,
    "dynamic_slice": dynamic_slice,
    "gather": gather,
    "texture_read": texture_read,
    "scan": scan,
    "while": while_loop,
    "cond": cond,
    "straight_through": straight_through,
}
