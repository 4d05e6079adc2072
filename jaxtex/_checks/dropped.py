"""Warnings of writes whose result is dropped: memory does not change, so that such a write is lost.

A call that is a statement of its own, such as ``surf2Dwrite(value, surface, x, y)``, drops its result: Python pops it
in the instruction after the call, and with it goes the last reference to it. What is bound to a name, returned or
passed on is never meant, whether or not it is used later.

While a function is traced, such a write is dead code, and the warning comes at once. Elsewhere the call may be there to
be timed or tried. Then it comes when the memory is read that should hold the values.
"""

import sys
import warnings
import weakref
from opcode import opmap
from types import CodeType, FrameType
from typing import Any, TypeVar

import jax
from jax.core import Tracer

Written = TypeVar("Written")

PACKAGE = __name__.partition(".")[0]
POP, CACHE = opmap["POP_TOP"], opmap["CACHE"]
# By the memory, a texture or an array of CUDA: the function whose result was dropped.
DROPPED: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
WRITES = ("surface_write", "surface_add", "surface_min", "surface_max")
REMEDY = "memory does not change here; assign what the write returns, and use it from then on"


def watch(function: str, memory: Any, written: Written) -> Written:
    """The result of a write, which is noted, to warn if the caller drops it. Neither object is kept alive.

    Args:
        function: the name of the write.
        memory: the texture or array that was to be written.
        written: the result, which is not an array of JAX.
    """
    # A write that is kept shows that the caller knows; an earlier one may have been timed.
    DROPPED.pop(memory, None)
    frame, _ = _caller()
    if frame is not None:
        is_traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(written))
        watched = weakref.finalize(
            written, _gone, function, weakref.ref(memory), is_traced, frame.f_code, frame.f_lasti
        )
        watched.atexit = False
    return written


def mention_dropped(function: str, memory: Any) -> None:
    """Warns of a read of memory, if the result of a write to it was dropped. It does so once."""
    if not DROPPED or function in WRITES:
        return
    writer = next((writer for held, writer in DROPPED.items() if held is memory), None)  # arrays of JAX have no hash
    if writer is not None:
        del DROPPED[memory]
        _, level = _caller()
        warnings.warn(
            f"{function}: the result of {writer} was dropped, and what is read does not hold its values; {REMEDY}.",
            stacklevel=level,
        )


def _gone(function: str, memory: "weakref.ref[Any]", is_traced: bool, code: CodeType, call: int) -> None:
    frame = sys._getframe(1).f_back  # pyright: ignore[reportPrivateUsage]  # behind that of `weakref.finalize`
    if frame is None or frame.f_code is not code or not _is_popped(code.co_code, call, frame.f_lasti):
        return
    if is_traced:
        warnings.warn(f"{function}: the result is dropped, and its values with it; {REMEDY}.", stacklevel=3)
    elif memory() is not None:
        DROPPED[memory()] = function


def _is_popped(code: bytes, call: int, now: int) -> bool:
    """Whether the instruction at `now` pops the result of the one at `call`."""
    between = code[call + 2 : now : 2]
    return now > call and code[now] == POP and all(instruction == CACHE for instruction in between)


def _caller() -> tuple[FrameType | None, int]:
    """The frame that called this package, and its distance from that of the function that asks."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage]
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    return frame, level
