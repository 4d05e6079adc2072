"""The command line: resize, rotate and warp images, and folders of images, with JAX on a CPU or a GPU.

Modules that need JAX, or packages of the extra `cli`, are imported after the arguments are parsed. Whatever a user can
mend is raised as a `process.UserError`, which names the file or the option.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from .commands import COMMANDS, check_combination, check_known, completion, main_parser, parse
from .jax_start import check_extra, find_device, print_info, start_jax
from .options import Options
from .process import UserError, collect_garbage, did_you_mean, run_program, stoppable, warnings_as_notes


def main(argv: Sequence[str] | None = None, programs: Path | None = None) -> int:
    """Runs a command line.

    Args:
        argv: the arguments, by default those of the program.
        programs: a folder where compiled programs are kept; `None` keeps none.

    Returns:
        The exit code: 0 for success, 2 for an error, which is explained in one sentence on standard error, 130 for an
        interrupt, 143 for a SIGTERM.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return run_program(lambda: run_arguments(arguments, programs))


def run_arguments(arguments: list[str], programs: Path | None) -> int:
    """Parses a command line and runs its command; returns the exit code."""
    if not arguments:
        main_parser().print_help()
        return 0
    if arguments[0] not in COMMANDS:
        options = [word for word in arguments[:1] if word.startswith("-")]
        check_known(main_parser(), options)
        main_parser().parse_args(options)
        nearest = did_you_mean(arguments[0], COMMANDS)
        raise UserError(f"there is no command {arguments[0]!r}; the commands are {', '.join(COMMANDS)}{nearest}")
    options = parse(arguments)
    if options.command == "info":
        start_jax()
        return print_info()
    if options.command == "completion":
        check_extra()
        print(completion(options.shell))
        return 0
    return run_warp(options, programs)


def run_warp(options: Options, programs: Path | None) -> int:
    """Runs a command that warps images."""
    check_combination(options)
    check_extra()
    # JAX takes a second to import, so a mistake in the options is reported first.
    start_jax()
    import jax

    from ..warp.sized.kept import keep_in
    from .files.codecs import silence_codecs
    from .files.inputs import find_files
    from .pipeline import recipe_of
    from .run import warp_file, warp_folder, warp_large

    collect_garbage()
    device = find_device(*options.device)
    with (
        keep_in(programs, device),
        jax.default_device(device),
        silence_codecs(),
        warnings_as_notes(options.quiet),
        stoppable(),
    ):
        recipe = recipe_of(options, device)
        targets, title = find_files(options, recipe.size_of_file)
        if title is None:
            ((source, target),) = targets.items()
            return (warp_large if options.tile else warp_file)(source, target, recipe)
        if options.tile:
            raise UserError("--tile warps one TIFF; run jaxtex for each file")
        return warp_folder(title, targets, recipe)
