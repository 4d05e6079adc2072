"""What surrounds every command: errors become sentences; signals, closed pipes and narrow encodings are foreseen."""

# pyright: strict

import sys
from collections.abc import Callable

from ..errors import FULL_DISK, UserError
from .messages import any_encoding, discard, flush, print_error
from .signals import exit_code, reason, signals_raise

ERROR = 2


def run_program(command: Callable[[], int]) -> int:
    """Runs a command.

    Args:
        command: returns an exit code, or raises.

    Returns:
        The exit code: that of the command; 2 for a `UserError`, which is explained in one sentence on standard error;
        128 and the number of the signal that stopped it.
    """
    try:
        with signals_raise(), any_encoding():
            try:
                return run_to_the_end(command)
            except UserError as error:
                print_error(f"jaxtex: error: {sentence(str(error), error)}")
                return ERROR
    except KeyboardInterrupt as error:
        print_error(f"jaxtex: error: {sentence(reason(error), error)}")
        return exit_code(error)


def sentence(message: str, error: BaseException) -> str:
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
        flush()
