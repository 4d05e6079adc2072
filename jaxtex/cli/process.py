"""What surrounds every command: errors become sentences, signals stop a run, and lines are printed to any stream."""

import contextlib
import difflib
import errno
import gc
import io
import os
import signal
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Generator, Iterable
from types import FrameType
from typing import Any, NoReturn, TextIO

ERROR = 2  # the exit code
LONGEST_MESSAGE = 160  # characters
# How many words a sentence proposes, and how like the mistaken one they must be: 1 for the same letters.
NEAREST, LEAST_LIKENESS = 2, 0.7
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
# The signals that stop a run, and what a message says of them. Windows has no SIGHUP.
STOPS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
PREFIX = "jaxtex: error: "
NEW_OBJECTS = 20_000  # after which Python looks for garbage


# Errors


class UserError(Exception):
    """A mistake that one sentence explains. `main` prints the sentence and returns 2, without a traceback."""


class OutputError(UserError):
    """What is wrong with an output, found while its input is read. The sentence names the output."""


class FullDiskError(UserError):
    """No space for an output, nor for those that would follow."""


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def one_line(error: BaseException) -> str:
    """The class and the message of an exception on one line, cut to a readable length."""
    message = textwrap.shorten(str(error), LONGEST_MESSAGE, placeholder=" ...").rstrip(".")
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def describe(error: BaseException) -> str:
    """An exception in a sentence."""
    if isinstance(error, MemoryError):
        message = " ".join(str(error).split()).rstrip(".")
        return f"it needs more memory than there is{f' ({message})' if message else ''}"
    return one_line(error)


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """The end of a sentence about a word that is not known: which of the known ones are nearest to it, if any is.

    Args:
        prefix: of all words, which makes none of them more like another.
    """
    near = difflib.get_close_matches(word.lower(), known, NEAREST, LEAST_LIKENESS)
    return f"; did you mean {' or '.join(prefix + name for name in near)}?" if near else ""


# Running


def run_program(command: Callable[[], int]) -> int:
    """Runs a command, which returns an exit code or raises.

    Returns:
        The exit code: that of the command; 2 for a `UserError`, which is explained in one sentence on standard error;
        128 and the number of the signal that stopped it.
    """
    try:
        with any_encoding():
            return run_to_the_end(command)
    except UserError as error:
        print_error(PREFIX + with_notes(str(error), error))
        return ERROR
    except KeyboardInterrupt as error:
        number = error.number if isinstance(error, Stopped) else signal.SIGINT
        print_error(PREFIX + with_notes(STOPS[signal.Signals(number).name], error))
        return 128 + number


def with_notes(message: str, error: BaseException) -> str:
    """A message with the notes that were added to an exception."""
    return "; ".join((message, *getattr(error, "__notes__", ())))


def run_to_the_end(command: Callable[[], int]) -> int:
    """Runs a command, and writes what it printed."""
    try:
        return command()
    except BrokenPipeError:
        discard(sys.stdout)
        return 0
    except OSError as error:
        if error.errno not in FULL_DISK or error.filename is not None:
            raise
        discard(sys.stdout)
        raise UserError(f"cannot write to standard output: {error.strerror}") from error
    finally:
        with reader_may_leave():
            if sys.stdout:
                sys.stdout.flush()


def collect_garbage() -> None:
    """Has Python collect garbage, where that is off, but rarely, and not among what has been imported."""
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS)
        gc.enable()


# Signals


received: list[int] = []  # of the signals in `stoppable`, the first


@contextlib.contextmanager
def stoppable() -> Generator[None, None, None]:
    """Makes signals that would end the process at once raise `Stopped`, so that no half-written file is left.

    It is raised once; further signals are ignored, so that what was begun is ended. Where an exception is lost, as in
    a callback of the garbage collector, `check_stopped` raises it later. A signal that is ignored, as under `nohup`,
    or that the caller handles stays as it is. No timer that was started meanwhile keeps the process: JAX starts one
    of a minute.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        yield
        return
    threads = set(threading.enumerate())
    received.clear()
    before = handle(stop)
    try:
        yield
    except BaseException as error:
        if not received:
            raise
        for thread in set(threading.enumerate()) - threads:
            if isinstance(thread, threading.Timer):
                thread.cancel()
        if isinstance(error, Stopped):
            raise
        # Modules written in C turn an exception in their import into an `ImportError`.
        stopped = Stopped(received[0])
        stopped.__notes__ = list(getattr(error, "__notes__", ()))
        raise stopped from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        received.clear()


def handle(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Sets a handler of the signals that stop a run, where the caller has set none; returns those before."""
    found = {number: signal.getsignal(number) for name in STOPS if (number := getattr(signal, name, None))}
    ours = (signal.SIG_DFL, signal.default_int_handler, end_at_once)
    before = {number: old for number, old in found.items() if old in ours}
    for number in before:
        signal.signal(number, handler)
    return before


def stop(number: int, _: FrameType | None) -> None:
    """A handler of signals that raises once."""
    if not received:
        received.append(number)
        raise Stopped(number)


def check_stopped() -> None:
    """Raises `Stopped` if a signal has come, between one image and the next."""
    if received:
        raise Stopped(received[0])


def end_at_once(number: int, _: FrameType | None) -> NoReturn:
    """A handler of signals that ends the process where nothing can be lost: while modules are imported."""
    os.write(2, f"{PREFIX}{STOPS[signal.Signals(number).name]}\n".encode())
    os._exit(128 + number)


# What is printed


def printable(text: str) -> str:
    """Text in which characters that a terminal would obey, such as escape sequences in names, are written out."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def print_report(line: str) -> None:
    """Prints a line to standard output. A reader who closed it wants no more, which is no error."""
    with reader_may_leave():
        write_line(line, sys.stdout)
        if sys.stdout:
            sys.stdout.flush()


def print_error(line: str) -> None:
    """Prints a line to standard error; a line that nobody can see is lost."""
    try:
        write_line(line, sys.stderr)
    except (OSError, ValueError):
        discard(sys.stderr)


def print_notes(name: object, notes: Iterable[str]) -> None:
    """Prints notes on a file to standard error, each the end of a sentence that begins with its name."""
    for note in notes:
        print_error(f"jaxtex: note: {name} {note}")


@contextlib.contextmanager
def warnings_as_notes(is_quiet: bool) -> Generator[None, None, None]:
    """Prints warnings of libraries, such as JAX's of a cache that cannot be written, as notes, or not at all."""

    def show(message: Warning | str, *_: object) -> None:
        if not is_quiet:
            print_error(f"jaxtex: note: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def write_line(line: str, stream: TextIO | None) -> None:
    """Writes a line above the progress bar, if there is one, to a stream that may be closed."""
    if stream is None:
        return
    if sys.modules.get("tqdm"):  # which is of the extra `cli`, and slow to import
        from tqdm import tqdm

        tqdm.write(printable(line), file=stream)
    else:
        print(printable(line), file=stream)


@contextlib.contextmanager
def reader_may_leave() -> Generator[None, None, None]:
    """Ends the block without an error if standard output is a closed pipe."""
    try:
        yield
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        raise UserError(f"cannot write to standard output: {error.strerror or error}") from error


def discard(stream: TextIO) -> None:
    """Lets what is left in the buffer of a stream vanish, so that Python does not fail to write it at its end."""
    with contextlib.suppress(OSError, io.UnsupportedOperation):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


@contextlib.contextmanager
def any_encoding() -> Generator[None, None, None]:
    """Writes characters that standard output cannot encode as escapes."""
    stream, errors = sys.stdout, getattr(sys.stdout, "errors", None)
    if not isinstance(stream, io.TextIOWrapper) or errors is None:
        yield
        return
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            stream.reconfigure(errors=errors)
