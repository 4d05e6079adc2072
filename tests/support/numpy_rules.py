"""What the primitives of reads compute, in NumPy: one function of the operands and the parameters of each."""

import types

import jax.numpy as jnp
import numpy as np

RULES = {}

# Whether a gather that promises that its indices are in bounds is held to that. JAX's own functions break the promise.
promises = types.SimpleNamespace(are_checked=False)


def rule(*names):
    """A decorator: the rule of primitives of these names."""

    def register(function):
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def elementwise(function):
    """The rule of a function of arrays of one dtype, which is that of the result."""
    return lambda operands, _: np.asarray(function(*operands)).astype(operands[0].dtype, copy=False)


def in_own_dtype(function):
    """The rule of a function whose result has the dtype that NumPy gives it."""
    return lambda operands, _: function(*operands)


def is_integer(x):
    return np.issubdtype(x.dtype, np.integer)


RULES |= {
    name: elementwise(getattr(np, function))
    for name, function in (
        *((name, name) for name in ("floor", "ceil", "sqrt", "square", "exp", "exp2", "expm1", "log", "log2", "log1p")),
        *(("sin", "sin"), ("cos", "cos")),
        *(("add", "add"), ("add_any", "add"), ("sub", "subtract"), ("mul", "multiply"), ("neg", "negative")),
        *(("max", "maximum"), ("min", "minimum"), ("pow", "power")),
        *(("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"), ("not", "invert")),
    )
}
RULES |= {
    name: in_own_dtype(getattr(np, function))
    for name, function in (
        *(("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater")),
        *(("ge", "greater_equal"), ("is_finite", "isfinite"), ("abs", "abs")),
    )
}
RULES |= {
    "empty": lambda _, params: np.zeros(params["shape"], params["dtype"]),
    "sign": elementwise(lambda x: np.where(x == 0, x, np.sign(x))),
}


@rule("div")
def div(operands, _):
    x, y = operands
    if not is_integer(x):
        return np.asarray(x / y).astype(x.dtype, copy=False)
    remainder = np.fmod(x, np.where(y == 0, 1, y))
    return np.where(y == 0, -1, (x - remainder) // np.where(y == 0, 1, y)).astype(x.dtype)


@rule("rem")
def rem(operands, _):
    x, y = operands
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y))).astype(x.dtype) if is_integer(x) else np.fmod(x, y)


@rule("shift_left")
def shift_left(operands, _):
    x, bits = operands
    return np.where(shifts(x, bits), np.left_shift(x, within(x, bits)), 0).astype(x.dtype)


@rule("shift_right_logical")
def shift_right_logical(operands, _):
    x, bits = operands
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    shifted = np.right_shift(x.astype(unsigned), within(x, bits).astype(unsigned)).astype(x.dtype)
    return np.where(shifts(x, bits), shifted, 0).astype(x.dtype)


@rule("shift_right_arithmetic")
def shift_right_arithmetic(operands, _):
    x, bits = operands
    return np.where(shifts(x, bits), np.right_shift(x, within(x, bits)), np.where(x < 0, -1, 0)).astype(x.dtype)


def shifts(x, bits):
    """Whether a number of bits is one by which `x` can be shifted."""
    return (bits >= 0) & (bits < 8 * x.dtype.itemsize)


def within(x, bits):
    return np.where(shifts(x, bits), bits, 0).astype(x.dtype)


@rule("round")
def rounded(operands, params):
    (x,) = operands
    if params["rounding_method"].value == 1:  # to even
        return np.rint(x)
    whole = np.trunc(x)
    return (whole + np.copysign(abs(x - whole) >= 0.5, x)).astype(x.dtype)


@rule("integer_pow")
def integer_pow(operands, params):
    """By products of squares, as XLA is told to compute it."""
    (x,) = operands
    exponent, power = abs(params["y"]), None
    while exponent:
        if exponent & 1:
            power = x if power is None else power * x
        exponent >>= 1
        x = x * x if exponent else x
    power = np.ones_like(x) if power is None else power
    return (1 / power).astype(x.dtype) if params["y"] < 0 else power


@rule("select_n")
def select_n(operands, _):
    which, *cases = operands
    if which.dtype == bool:
        return np.where(which, cases[1], cases[0])
    return np.select([which == number for number in range(len(cases))], cases)


@rule("convert_element_type")
def convert_element_type(operands, params):
    """Floats become integers towards zero; those beyond the range saturate, and NaN becomes zero."""
    (x,), dtype = operands, np.dtype(params["new_dtype"])
    if x.dtype == dtype:
        return x
    if dtype.kind == "b":
        return x != 0
    if not (np.issubdtype(dtype, np.integer) and jnp.issubdtype(x.dtype, jnp.floating)):
        return x.astype(dtype)
    info = np.iinfo(dtype)
    x = np.trunc(np.where(np.isnan(x), 0, x).astype(np.float64))
    below, above = x <= info.min, x >= info.max
    whole = np.where(below | above, 0, x).astype(dtype)
    return np.where(below, dtype.type(info.min), np.where(above, dtype.type(info.max), whole))


@rule("bitcast_convert_type")
def bitcast_convert_type(operands, params):
    x, dtype = np.ascontiguousarray(operands[0]).reshape(operands[0].shape), np.dtype(params["new_dtype"])
    if dtype.itemsize == x.dtype.itemsize:
        return x.view(dtype)
    return x[..., None].view(dtype) if dtype.itemsize < x.dtype.itemsize else x.view(dtype)[..., 0]


@rule("broadcast_in_dim")
def broadcast_in_dim(operands, params):
    (x,), shape = operands, params["shape"]
    aligned = [1] * len(shape)
    for size, dim in zip(x.shape, params["broadcast_dimensions"]):
        aligned[dim] = size
    return np.broadcast_to(x.reshape(aligned), shape)


RULES |= {
    "reshape": lambda operands, params: operands[0].reshape(params["new_sizes"]),
    "squeeze": lambda operands, params: operands[0].squeeze(tuple(params["dimensions"])),
    "expand_dims": lambda operands, params: np.expand_dims(operands[0], params["dimensions"]),
    "transpose": lambda operands, params: operands[0].transpose(params["permutation"]),
    "rev": lambda operands, params: np.flip(operands[0], tuple(params["dimensions"])),
    "stack": lambda operands, params: np.stack(operands, params["axis"]),
    "unstack": lambda operands, params: [*np.moveaxis(operands[0], params["axis"], 0)],
    "tile": lambda operands, params: np.tile(operands[0], params["reps"]),
    "concatenate": lambda operands, params: np.concatenate(operands, params["dimension"]),
    "split": lambda operands, params: np.split(operands[0], np.cumsum(params["sizes"])[:-1], params["axis"]),
    "dynamic_slice": lambda operands, params: operands[0][window(operands[0], params["slice_sizes"], operands[1:])],
}
RULES |= dict.fromkeys(("copy", "copy_p", "stop_gradient"), lambda operands, _: operands[0])
RULES |= dict.fromkeys(("optimization_barrier", "device_put"), lambda operands, _: operands)


@rule("slice")
def slice_of(operands, params):
    (x,) = operands
    strides = params["strides"] or [1] * x.ndim
    return x[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def window(x, sizes, starts):
    """The slices of a window that is moved to lie inside of `x`."""
    starts = [min(max(int(start), 0), limit - size) for start, limit, size in zip(starts, x.shape, sizes)]
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes))


@rule("pad")
def pad(operands, params):
    x, value = operands
    config = params["padding_config"]
    sizes = [n + max(n - 1, 0) * inside for n, (_, _, inside) in zip(x.shape, config)]
    result = np.full([n + low + high for n, (low, high, _) in zip(sizes, config)], value, x.dtype)
    places = (slice(low, low + n, inside + 1) for n, (low, _, inside) in zip(sizes, config))
    result[tuple(places)] = x
    return result


@rule("iota")
def iota(operands, params):
    shape, dim = params["shape"], params["dimension"]
    aligned = [-1 if k == dim else 1 for k in range(len(shape))]
    return np.broadcast_to(np.arange(shape[dim]).astype(params["dtype"]).reshape(aligned), shape)


def reduction(function):
    def reduce(operands, params):
        """Along several axes NumPy adds one by one, so that long sums of floats are made wide."""
        (x,) = operands
        wide = np.float64 if jnp.issubdtype(x.dtype, jnp.floating) else x.dtype
        return np.asarray(function.reduce(x, axis=tuple(params["axes"]), dtype=wide)).astype(x.dtype)

    return reduce


RULES |= {"reduce_sum": reduction(np.add), "reduce_max": reduction(np.maximum), "reduce_min": reduction(np.minimum)}
RULES |= {"reduce_and": reduction(np.bitwise_and), "reduce_or": reduction(np.bitwise_or)}


def positions(shape, indices, places, sizes, window_dims, skipped, batching, rank, mode):
    """Where windows of a gather or scatter lie in an array of `shape`: an index for each axis, and which are inside.

    Args:
        places: the axes for which the last axis of `indices` holds the start of a window.
        sizes: of a window.
        window_dims: the axes of the result that run through a window.
        skipped: the axes of the array that have none there, as their window has size 1.
        batching: pairs of an axis of the array and an axis of the indices that run together.
        rank: of the result.
    """
    batch_dims = [dim for dim in range(rank) if dim not in window_dims]
    inside = [dim for dim in range(len(shape)) if dim not in skipped and dim not in dict(batching)]

    def along(values, dims):
        aligned = [1] * rank
        for size, dim in zip(values.shape, dims):
            aligned[dim] = size
        return values.reshape(aligned)

    valid, found = np.ones([1] * rank, bool), []
    for dim, size in enumerate(shape):
        position = np.zeros([1] * rank, np.int64)
        if dim in places:
            start, last = indices[..., places.index(dim)].astype(np.int64), size - sizes[dim]
            within = (start >= 0) & (start <= last)
            if mode == "PROMISE_IN_BOUNDS" and promises.are_checked:
                assert within.all(), f"a promise is broken: indices {start[~within][:5]} of an axis of {size}"
            if mode == "FILL_OR_DROP":
                valid = valid & along(within, batch_dims)
            position = position + along(np.clip(start, 0, max(last, 0)), batch_dims)
        if dim in dict(batching):
            position = position + along(np.arange(size), [batch_dims[dict(batching)[dim]]])
        if dim in inside:
            position = position + along(np.arange(sizes[dim]), [window_dims[inside.index(dim)]])
        found.append(position)
    return found, valid


@rule("gather")
def gather(operands, params):
    (x, indices), numbers, mode = operands, params["dimension_numbers"], params["mode"].name
    batching = [*zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims)]
    rank, dims = indices.ndim - 1 + len(numbers.offset_dims), (numbers.offset_dims, numbers.collapsed_slice_dims)
    starts = indices, numbers.start_index_map, params["slice_sizes"]
    found, valid = positions(x.shape, *starts, *dims, batching, rank, mode)
    values = x[tuple(found)]
    if valid.all():
        return values
    fill = params["fill_value"]
    return np.where(valid, values, np.asarray(missing(x.dtype) if fill is None else fill, x.dtype))


def missing(dtype):
    """What JAX returns where an index is outside."""
    if jnp.issubdtype(dtype, jnp.inexact):
        return np.nan
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def scatter_add(operands, params):
    (x, indices, updates), numbers = operands, params["dimension_numbers"]
    skipped, batching = numbers.inserted_window_dims, numbers.operand_batching_dims
    sizes, dims = [1] * x.ndim, (dim for dim in range(x.ndim) if dim not in (*skipped, *batching))
    for dim, k in zip(dims, numbers.update_window_dims):
        sizes[dim] = updates.shape[k]
    mode = "FILL_OR_DROP" if params["mode"] is None else params["mode"].name
    starts, dims = (indices, numbers.scatter_dims_to_operand_dims, sizes), (numbers.update_window_dims, skipped)
    batching = [*zip(batching, numbers.scatter_indices_batching_dims)]
    found, valid = positions(x.shape, *starts, *dims, batching, updates.ndim, mode)
    valid, result = np.broadcast_to(valid, updates.shape), x.copy()
    np.add.at(result, tuple(np.broadcast_to(at, updates.shape)[valid] for at in found), updates[valid])
    return result


RULES |= dict.fromkeys(("scatter-add", "scatter_add"), scatter_add)
