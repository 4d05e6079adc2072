"""Warp images, and folders of images, with JAX on a CPU, a GPU or a TPU.

    jaxtex warp photo.jpg rotated.png --rotate 20 --filter cubic
    jaxtex warp photos/ thumbnails/ --scale 0.25 --size 320x240 --antialias
    jaxtex warp page.jpg flat.png --perspective 212,95:0,0 988,140:800,0 1090,830:800,600 97,760:0,600
    jaxtex warp wide.jpg straight.jpg --lens -0.28,0.07 --camera 910,910,960,540
    jaxtex info

Coordinates are in pixels. The origin is the top left corner of the image, x points right, y points
down, and pixel centers are at +0.5. A transform maps points of the input to points of the output.

--scale, --shear and --rotate act about the center of the image, then --translate moves the result.
They act in this order, in whatever order they are given. The center of the input maps to the center
of the output, also if --size gives the output another size.

Each of the following options is a whole transform and is given alone:
--matrix: x' = A x + B y + C and y' = D x + E y + F, about the top left corner.
--perspective: four points of the input and the points of the output to which they map. Pixels of
the output beyond the horizon, which would show what is behind the camera, read outside the input.
--lens removes the distortion of a lens, --distort applies it: one to five coefficients of the
Brown-Conrady model, in OpenCV's order k1,k2,p1,p2,k3; missing coefficients are 0. --camera gives the
focal lengths and the principal point. OpenCV has pixel centers at whole numbers, so add 0.5 to its
cx and cy.
--flow: a NumPy file of shape (height, width, 2) and a floating dtype, with the size of the output.
The pixel of the output at (x, y) reads the input at (x + dx, y + dy). Where dx or dy is NaN, it reads
outside the input.

Values are filtered as they are stored, gamma-encoded, as image editors do. Colors are weighted by
alpha, so a transparent pixel does not bleed into its neighbors. An image that becomes much smaller
shows aliasing; --antialias averages the input over the footprint of each pixel of the output.

PNG, JPEG, TIFF and WebP files are read and written. An image keeps its 8 or 16 bits if the format
of the output can store them (PNG, TIFF: 8 and 16; JPEG, WebP: 8). PNG, TIFF and WebP are written
without loss, JPEG with quality 95. The packages that read and write images are the extra cli, which
"pip install 'jaxtex[cli]'" installs.

The output keeps the color profile, EXIF, XMP, IPTC, comments, the resolution, and the texts and
colors of PNG, as far as its format can; a note names the rest. The EXIF orientation is applied and
reset, the sizes that EXIF states are those of the output, and its thumbnail is dropped. CMYK becomes
sRGB by its profile. --strip drops all but the colors. Camera raw files and volumes are refused.

Images of more than 500 million pixels are refused before anything is allocated, as are sides that
the format cannot store: JPEG 65535, WebP 16383, PNG 1000000. --max-pixels sets another limit.

A file that exists at OUT is replaced, even if it is IN, and is complete at every moment. It keeps its
permissions, and a symbolic link stays a link; a new file takes the permissions of IN. A read-only
file is refused without --force. Other names (hard links) of a file keep the old picture.

The images of a folder are read, warped and written in parallel. With N cores, of which at most 16
are used, at most 2 N + 3 images are in memory. An image that fails is reported and skipped. Hidden
files are left out. A run that was stopped, by Ctrl-C, SIGTERM or a full disk, leaves whole files;
--skip-existing (or --resume) then warps only the images that are missing.

The exit code is 0, or 2 after an error, or 130 after an interrupt, or 143 after SIGTERM.
"""

# pyright: strict

import sys
from collections.abc import Sequence

from .errors import UserError
from .extra import check_extra
from .file_options import parsed_file_options
from .grammar import AFFINE_PARTS, WHOLE_TRANSFORMS, Options, build_parser, protect_negative_number
from .program import run_program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line.

    Args:
        argv: the arguments, by default those of the program.

    Returns:
        The exit code: 0 for success, 2 for an error, which is explained in one sentence on standard error, 130 for an
        interrupt, 143 for a SIGTERM.
    """
    argv = sys.argv[1:] if argv is None else argv
    return run_program(lambda: run_command(argv))


def run_command(argv: Sequence[str]) -> int:
    """Parses a command line and runs its command."""
    commands = {"warp": run_warp, "info": run_info}
    arguments = [protect_negative_number(argument) for argument in argv]
    options = build_parser(__doc__).parse_args(arguments, namespace=Options())
    return commands[options.command](options)


def run_info(_: Options) -> int:
    """Runs `jaxtex info`."""
    from .info import print_info

    return print_info()


def run_warp(options: Options) -> int:
    """Runs `jaxtex warp`."""
    check_combination(options)
    check_extra()
    # JAX takes a second to import, so a mistake in the options is reported first.
    import jax

    from ..sampler import Sampler
    from .decode import silence_codecs
    from .devices import find_device
    from .files import warp_file
    from .folders import warp_folder
    from .jobs import Job
    from .transforms import build_transform
    from .warp import ReadOptions

    source, target = options.source, options.target
    sampler = Sampler(address_mode=options.address_mode, filter_mode=options.filter_mode)
    device = find_device(*options.device)
    with jax.default_device(device), silence_codecs():
        job = Job(
            build_transform(options),
            ReadOptions(sampler, options.antialias),
            device,
            size=options.size,
            border=options.border,
            compare=options.compare,
            files=parsed_file_options(options),
        )
        job.transform.check()
        if source.is_dir():
            return warp_folder(source, target, job)
        return warp_file(source, target / source.name if target.is_dir() else target, job)


def check_combination(options: Options) -> None:
    """Checks that no option excludes another one or has no effect.

    Raises:
        UserError: if one does.
    """
    given = [name for name in (*WHOLE_TRANSFORMS, *AFFINE_PARTS) if getattr(options, name) is not None]
    if len(given) > 1 and given[0] in WHOLE_TRANSFORMS:
        raise UserError(f"--{given[0]} is a whole transform and cannot be combined with --{given[1]}")
    if options.camera and options.lens is None and options.distort is None:
        raise UserError("--camera has no effect without --lens or --distort")
    if options.border is not None and options.address_mode != "border":
        raise UserError(f"--border-color has no effect with --address {options.address_mode}")
    if options.antialias and options.filter_mode == "point":
        raise UserError("--antialias averages texels and cannot be combined with --filter point")
