"""`python -m jaxtex`, and the program `jaxtex`."""

import gc
import sys


def run() -> int:
    """Runs the command line of the process; returns the exit code. It handles interrupts during imports, too."""
    gc.disable()  # Imports make little garbage, and looking for it takes long. `collect_garbage` turns it on again.
    try:
        from ._jax.program_files import delete_oldest
        from .cli import main
        from .cli.jax_start import MOST_BYTES, keep_compilations
        from .cli.process import end_at_once, handle

        handle(end_at_once)  # until there is something to clean up
        folder = keep_compilations()
        code = main(programs=folder)
        if folder is not None:
            delete_oldest(folder, MOST_BYTES)
        return code
    except KeyboardInterrupt:
        print("jaxtex: error: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run())
