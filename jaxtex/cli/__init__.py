"""The command line: resize, rotate and warp images, and folders of images, with JAX on a CPU or a GPU.

`grammar.descriptions` holds what the help says. Modules that need JAX, or packages of the extras `cli` and `explore`,
are imported after the arguments are parsed.
"""

# pyright: strict

import sys
from collections.abc import Sequence

from .environment.extra import check_explore_extra, check_extra
from .environment.jax_settings import start_jax
from .errors import UserError
from .grammar.commands import COMMANDS, main_parser, parse
from .grammar.file_options import MAX_PIXELS, parsed_file_options
from .grammar.option_groups import AFFINE_PARTS, WHOLE_TRANSFORMS, WITH_BORDER, Options
from .grammar.values import FISHEYE_COEFFICIENTS
from .process.messages import warnings_as_notes
from .process.program import run_program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line.

    Args:
        argv: the arguments, by default those of the program.

    Returns:
        The exit code: 0 for success, 2 for an error, which is explained in one sentence on standard error, 130 for an
        interrupt, 143 for a SIGTERM.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return run_program(lambda: run_arguments(arguments))


def run_arguments(arguments: list[str]) -> int:
    """Parses a command line and runs its command; returns the exit code."""
    if not arguments:
        main_parser().print_help()
        return 0
    if arguments[0] not in COMMANDS:
        main_parser().parse_args([word for word in arguments[:1] if word.startswith("-")])
        raise UserError(f"there is no command {arguments[0]!r}; the commands are {', '.join(COMMANDS)}")
    return run(parse(arguments))


def run(options: Options) -> int:
    """Runs a command; returns the exit code."""
    if options.command == "info":
        start_jax()
        from .environment.info import print_info

        return print_info()
    if options.command == "completion":
        from .grammar.completion import completion

        print(completion(options.shell))
        return 0
    if options.command == "explore":
        return run_explore(options)
    return run_warp(options)


def run_explore(options: Options) -> int:
    """Runs `jaxtex explore`."""
    check_explore_extra()
    start_jax()
    import jax

    from .environment.devices import find_device
    from .explore.shown_picture import read_shown
    from .pictures.decode import silence_codecs

    device = find_device(*options.device)
    with jax.default_device(device), silence_codecs(), warnings_as_notes(is_quiet=False):
        picture = read_shown(options, options.max_pixels or MAX_PIXELS)
        # Panel takes a second to import, so a file that cannot be read is reported first.
        from .explore.serving import serve

        return serve(picture, options, device)


def run_warp(options: Options) -> int:
    """Runs a command that warps images."""
    check_combination(options)
    check_extra()
    # JAX takes a second to import, so a mistake in the options is reported first.
    start_jax()
    import jax

    from .batch.inputs import find_files
    from .batch.jobs import Job
    from .batch.large_files import warp_large
    from .batch.runs import warp_file, warp_folder
    from .environment.devices import find_device
    from .pictures.decode import silence_codecs
    from .pictures.writing import write_options
    from .transforms.from_options import build_transform
    from .warping.reading import read_options

    device = find_device(*options.device)
    with jax.default_device(device), silence_codecs(), warnings_as_notes(options.quiet):
        job = Job(
            build_transform(options),
            read_options(options),
            device,
            size=options.size,
            border=options.border,
            compare=options.compare,
            alpha=options.alpha,
            preview=options.preview,
            write=write_options(options),
            files=parsed_file_options(options),
            threads=options.jobs,
            verbosity=options.verbose - options.quiet,
        )
        job.transform.check()
        found = find_files(options)
        if options.tile and found.title is not None:
            raise UserError("--tile warps one TIFF; run it for each")
        if found.title is None:
            ((source, target),) = found.targets.items()
            if options.tile:
                return warp_large(source, target, job, options)
            return warp_file(source, target, job)
        return warp_folder(found.title, found.targets, job)


def check_combination(options: Options) -> None:
    """Checks that no option excludes another one or has no effect.

    Raises:
        UserError: if one does.
    """
    if options.command == "resize":
        given = [f"--{name}" for name in ("size", "scale", "fit") if getattr(options, name) is not None]
        if len(given) != 1:
            raise UserError(f"resize takes one of --size, --scale and --fit, but got {' and '.join(given) or 'none'}")
    transforms = [name for name in (*WHOLE_TRANSFORMS, *AFFINE_PARTS) if getattr(options, name) is not None]
    if len(transforms) > 1 and transforms[0] in WHOLE_TRANSFORMS:
        raise UserError(f"--{transforms[0]} is a whole transform and cannot be combined with --{transforms[1]}")
    if options.command == "undistort" and not transforms:
        raise UserError("undistort takes one of --lens, --distort and --calibration, but got none")
    if options.camera and options.lens is None and options.distort is None:
        raise UserError("--camera has no effect without --lens or --distort")
    if options.model == "fisheye":
        coefficients = options.lens or options.distort
        if coefficients is None and options.calibration is None:
            raise UserError("--model has no effect without --lens, --distort or --calibration")
        if len(coefficients or ()) > len(FISHEYE_COEFFICIENTS):
            raise UserError(f"a fisheye lens has at most four coefficients, {','.join(FISHEYE_COEFFICIENTS)}")
    if options.expand and transforms and transforms[0] in WHOLE_TRANSFORMS:
        raise UserError(f"--expand has no effect with --{transforms[0]}; --size gives the size of the output")
    sizes = [f"--{name}" for name in ("size", "expand", "crop") if getattr(options, name)]
    if len(sizes) > 1:
        raise UserError(f"{sizes[0]} and {sizes[1]} both give the size of the output; leave one out")
    if options.border is not None and options.address_mode not in WITH_BORDER:
        raise UserError(f"--border-color has no effect with --address {options.address_mode}")
    if options.alpha and options.address_mode not in WITH_BORDER:
        raise UserError(f"--alpha has no effect with --address {options.address_mode}")
    if options.antialias is False and options.filter_mode == "area":
        raise UserError("--filter area averages texels and cannot be combined with --no-antialias")
    if options.antialias and options.filter_mode == "point":
        raise UserError("--antialias averages texels and cannot be combined with --filter point")
    if options.quiet and options.verbose:
        raise UserError("--quiet and --verbose exclude each other")
    if options.memory is not None and not options.tile:
        raise UserError("--memory has no effect without --tile")
    for name in ("compare", "preview", "flow"):
        if options.tile and getattr(options, name):
            raise UserError(f"--{name} needs whole images in memory and cannot be combined with --tile")
    if options.preview and options.compare:
        raise UserError("--preview shows both images already; leave --compare out")
