"""Signals that end a run: an interrupt from the keyboard, and others that are treated alike."""

# pyright: strict

import contextlib
import signal
import threading
from collections.abc import Generator
from types import FrameType
from typing import NoReturn

# The signals that end a process, beside the interrupt, and what a message says of them. Windows has no SIGHUP.
WORDS = {"SIGTERM": "terminated", "SIGHUP": "hung up"}
INTERRUPTED = "interrupted"


class Terminated(KeyboardInterrupt):
    """A signal asked the process to end.

    Attributes:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_code(error: KeyboardInterrupt) -> int:
    """The exit code of a run that was stopped, as shells write it: 128 and the number of the signal."""
    return 128 + (error.number if isinstance(error, Terminated) else signal.SIGINT)


def reason(error: KeyboardInterrupt) -> str:
    """Why a run was stopped."""
    if isinstance(error, Terminated):
        return WORDS[signal.Signals(error.number).name]
    return INTERRUPTED


@contextlib.contextmanager
def signals_raise() -> Generator[None, None, None]:
    """Makes signals that would end the process at once raise `Terminated`, so that no half-written file is left.

    A signal that is ignored, as under `nohup`, or that the caller handles stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        yield
        return

    def stop(number: int, _: FrameType | None) -> NoReturn:
        raise Terminated(number)

    numbers = [number for name in WORDS if (number := getattr(signal, name, None)) is not None]
    changed = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def undisturbed() -> Generator[None, None, None]:
    """Ignores further signals of `signals_raise` and interrupts while what was begun is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGINT", *WORDS)
    handlers = {number: signal.getsignal(number) for name in names if (number := getattr(signal, name, None))}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
