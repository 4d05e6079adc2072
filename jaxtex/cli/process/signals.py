"""Signals that end a run: an interrupt from the keyboard, and others that are treated alike."""

# pyright: strict

import contextlib
import gc
import signal
import sys
import threading
from collections.abc import Generator
from types import FrameType

# The signals that end a process, beside the interrupt, and what a message says of them. Windows has no SIGHUP.
WORDS = {"SIGTERM": "terminated", "SIGHUP": "hung up"}
INTERRUPTED = "interrupted"
# The signal of a timer, and how often it looks whether an exception would arrive now.
RETRY, RETRY_SECONDS = "SIGALRM", 0.02
IMPORT_SYSTEM = "<frozen importlib"


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

    A signal that comes where an exception would be lost raises later: modules written in C turn an interrupt of their
    import into an `ImportError`, and Python drops one of a callback of its garbage collector, of which JAX has one.
    After one that raised, no timer that was started meanwhile keeps the process: JAX starts one of a minute. A signal
    that is ignored, as under `nohup`, or that the caller handles stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        yield
        return
    handler = Handler(fragile_frames(sys._getframe()))  # pyright: ignore[reportPrivateUsage]
    numbers = [number for name in (*WORDS, RETRY) if (number := getattr(signal, name, None)) is not None]
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *numbers)}
    changed = [n for n, old in before.items() if old in (signal.SIG_DFL, signal.default_int_handler)]
    for number in changed:
        signal.signal(number, handler.stop)
    threads = set(threading.enumerate())
    try:
        yield
    except KeyboardInterrupt:
        for thread in set(threading.enumerate()) - threads:
            if isinstance(thread, threading.Timer):
                thread.cancel()
        raise
    finally:
        handler.stop_retrying()
        for number in changed:
            signal.signal(number, before[number])


class Handler:
    """A handler of signals that waits where an exception would be lost.

    Args:
        outer: what `fragile_frames` counted when the handler was made.
    """

    def __init__(self, outer: int) -> None:
        self.outer = outer
        self.waiting: int | None = None

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Raises, or tries again a little later."""
        if number == getattr(signal, RETRY, None):
            if self.waiting is None:
                return
            number = self.waiting
        if hasattr(signal, "setitimer") and fragile_frames(frame) > self.outer:
            self.waiting = number
            signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)
            return
        self.waiting = None
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    def stop_retrying(self) -> None:
        """Forgets a signal that waits."""
        if self.waiting is not None:
            self.waiting = None
            signal.setitimer(signal.ITIMER_REAL, 0)


def fragile_frames(frame: FrameType | None) -> int:
    """How many frames of imports, and of callbacks of the garbage collector, are on the stack that ends in `frame`."""
    callbacks, count = [getattr(callback, "__code__", None) for callback in gc.callbacks], 0
    while frame is not None:
        count += frame.f_code.co_filename.startswith(IMPORT_SYSTEM) or frame.f_code in callbacks
        frame = frame.f_back
    return count


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
