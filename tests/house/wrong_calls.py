"""Calls of public functions with a wrong argument: with a value of no use, or with what a caller may have instead."""

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

import jaxtex as jt
from tests.house.public_api import parameters_of
from tests.house.public_calls import CALLS, EAGER, TEXTURE


class Tensor:
    """An array of another library, such as torch, of which NumPy makes one."""

    def __init__(self, array):
        self.array, self.dtype = np.asarray(array), "torch.float32"

    shape = property(lambda self: self.array.shape)

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __getitem__(self, index):
        return self.array[index]


TRACED = jax.ShapeDtypeStruct((), np.int32)
ANY = {
    "a word": "no",
    "nothing": None,
    "an empty list": [],
    "a complex array": np.zeros((2, 2), np.complex64),
    "strange sizes": np.zeros((5, 11, 13), np.float32),
    "a traced integer": TRACED,
    "a traced array": jax.ShapeDtypeStruct((3,), np.float32),
    "a traced pair": (TRACED, TRACED),
    "a pair of nothing": [None, None],
    "words": ["a", "b"],
    "bytes": b"abc",
    "a negative number": -1,
    "no number": float("nan"),
    "a dictionary": {"a": 1},
    "a set": {1, 2},
    "an object": object(),
    "a class": int,
    "a texture": TEXTURE,
    "a sampler": jt.Sampler(),
    "a picture": Image.new("RGB", (9, 6)),
}
# An argument that a call needs is an array in most cases.
REQUIRED = ANY | {
    "no axes": np.zeros((), np.float32),
    "many axes": np.zeros((1,) * 7, np.float32),
    "no elements": np.zeros((0, 0, 0), np.float32),
}
# These go on to a function of the caller, which raises what it likes, as one of another meaning does.
PASSED_ON = ("extra_arguments", "extra_keywords")
FUNCTIONS = ("f", "function", "localization", "mapping")


def of_arrays(function):
    """What `function` makes of a tree of arrays; `LookupError` if a value is none."""

    def change(value):
        leaves = jax.tree.leaves(value)
        if isinstance(value, jt.Texture) or not leaves or not all(map(is_array, leaves)):
            raise LookupError
        return function(value)

    return change


def is_array(leaf):
    return isinstance(leaf, np.ndarray | jax.Array) and not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def each(function):
    return of_arrays(lambda value: jax.tree.map(function, value))


def stored_as(dtype):
    """A texture, or arrays, in another dtype."""

    def change(value):
        if isinstance(value, jt.Texture):
            return jt.Texture(jnp.asarray(value.texels).astype(dtype), value.border_color, value.kind)
        return each(lambda a: jnp.asarray(a).astype(dtype))(value)

    return change


def stacked(value):
    if not isinstance(value, tuple) or len({a.shape for a in value}) > 1:
        raise LookupError
    return np.stack(value, -1)


# What a caller has in place of the right value.
NEARLY = {
    "halves": stored_as(jnp.bfloat16),
    "complex numbers": stored_as(np.complex64),
    "codes": stored_as(np.uint8),
    "integers": stored_as(np.int32),
    "a mask": stored_as(bool),
    "nested lists": each(lambda a: a.tolist()),
    "tensors": each(Tensor),
    "one stacked array": of_arrays(stacked),
    "arrays of words": each(lambda a: np.full(a.shape, "a")),
    "arrays of objects": each(lambda a: np.full(a.shape, None)),
    "one more": of_arrays(lambda a: (*a, a[0]) if isinstance(a, tuple | list) else a[None]),
    "one less": of_arrays(lambda a: a[:-1] if isinstance(a, tuple | list) else a[0]),
}


def wrong_calls(name, function):
    """Of each call what is wrong with it, the positional arguments, and the others."""
    parameters, base = parameters_of(function), CALLS[name]
    for parameter in parameters.values():
        if parameter.name in PASSED_ON or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        for kind, value in (REQUIRED if parameter.default is parameter.empty else ANY).items():
            # An iterator over tiles is not traced.
            is_of_caller = (name in EAGER and "traced" in kind) or (parameter.name in FUNCTIONS and callable(value))
            if value is not parameter.default and not is_of_caller:
                yield f"{parameter.name}, {kind}", (), base | {parameter.name: value}
        for kind, change in NEARLY.items():
            yield from changed(f"{parameter.name}, {kind}", base, parameter.name, change)
    yield "a keyword", (), base | {"swirl": 1}
    for argument in {"coords", "indices"} & {*parameters}:
        before = [*parameters][: [*parameters].index(argument)]
        if {*before} <= {*base} and isinstance(base[argument], tuple):
            rest = {key: value for key, value in base.items() if key not in (*before, argument)}
            yield "coordinates one by one", (*(base[key] for key in before), *base[argument]), rest


def changed(wrong, base, argument, change):
    try:
        yield wrong, (), base | {argument: change(base[argument])}
    except (LookupError, IndexError):
        return
