"""Rules of primitives that move the names of numbers about, which costs a thread nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .statements import Names, Statements, literals

# The results of an equation, from the names of its operands.
Rule = Callable[[Statements, Any, list[Names]], Any]


def structural(function: Callable[[list[Names], dict[str, Any], Any], Any]) -> Rule:
    """A rule that moves names about, from a function of names, parameters and the first result's shape and dtype."""
    return lambda statements, eqn, args: function(args, eqn.params, eqn.outvars[0].aval)


def reshaped(args: list[Names], params: dict[str, Any], out: Any) -> Names:
    del params
    return args[0].reshape(out.shape)


def broadcast(args: list[Names], params: dict[str, Any], out: Any) -> Names:
    sizes = [1] * len(out.shape)
    for size, axis in zip(args[0].shape, params["broadcast_dimensions"]):
        sizes[axis] = size
    return np.broadcast_to(args[0].reshape(sizes), out.shape)


def iota(args: list[Names], params: dict[str, Any], out: Any) -> Names:
    del args
    axis = params["dimension"]
    numbers = np.arange(out.shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(out.shape))])
    return literals(np.broadcast_to(numbers, out.shape), out.dtype)


def sliced(args: list[Names], params: dict[str, Any], out: Any) -> Names:
    del out
    starts, limits = params["start_indices"], params["limit_indices"]
    return args[0][tuple(map(slice, starts, limits, params["strides"] or [None] * len(starts)))]


def split(args: list[Names], params: dict[str, Any], out: Any) -> list[Names]:
    del out
    return np.split(args[0], np.cumsum(params["sizes"])[:-1], params["axis"])


def unstacked(args: list[Names], params: dict[str, Any], out: Any) -> list[Names]:
    del out
    return list(np.moveaxis(args[0], params["axis"], 0))


def padded(args: list[Names], params: dict[str, Any], out: Any) -> Names:
    """With the number of the second operand between elements and around them; what lies outside is cut off."""
    names, between = args
    result = np.full(out.shape, between.item(), object)
    for index in np.ndindex(names.shape):
        place = tuple(low + i * (1 + inner) for i, (low, _, inner) in zip(index, params["padding_config"]))
        if all(0 <= i < n for i, n in zip(place, out.shape)):
            result[place] = names[index]
    return result


STRUCTURAL: dict[str, Rule] = {
    "broadcast_in_dim": structural(broadcast),
    "iota": structural(iota),
    "slice": structural(sliced),
    "split": structural(split),
    "unstack": structural(unstacked),
    "pad": structural(padded),
    "reshape": structural(reshaped),
    "squeeze": structural(reshaped),
    "transpose": structural(lambda args, params, out: np.transpose(args[0], params["permutation"])),
    "rev": structural(lambda args, params, out: np.flip(args[0], params["dimensions"])),
    "stack": structural(lambda args, params, out: np.stack(args, params["axis"])),
    "concatenate": structural(lambda args, params, out: np.concatenate(args, params["dimension"])),
    "tile": structural(lambda args, params, out: np.tile(args[0], params["reps"])),
}
