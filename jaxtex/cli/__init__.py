"""Warp image files from the command line, on whatever device JAX finds.

    jaxtex warp photo.jpg turned.png --rotate 20 --filter cubic
    jaxtex warp photos/ small/ --scale 0.25 --size 320x240 --antialias
    jaxtex warp page.jpg flat.png --perspective 212,95:0,0 988,140:800,0 1090,830:800,600 97,760:0,600
    jaxtex warp wide.jpg straight.jpg --lens -0.28,0.07 --camera 910,910,960,540
    jaxtex info

Pixels have their centres at +0.5; the origin is the top left corner, x points right, y down.
The transform maps input points to output points. The options act in this order, whatever
theirs is: scale, shear (x += X * y) and rotate (counter-clockwise as seen), about the image's
centre, then translate (pixels, right and down). The centre of the input goes to the centre of
the output, also with --size.

Each of these stands alone instead, in pixels about the top left corner:
--matrix: x' = A x + B y + C and y' = D x + E y + F.
--perspective: four pairs FROM:TO of a point of the input and where it goes. What a camera would
see behind itself, beyond the horizon, lies outside the input.
--lens: takes out the distortion of a lens, --distort puts it in: up to five numbers k1,k2,p1,p2,k3
of the Brown-Conrady model, as OpenCV has them; those that lack are 0. --camera gives focal lengths
and centre, fx,fy,cx,cy; of OpenCV's, whose pixels have centres at +0, add 0.5 to cx and cy. By
default the focal length is the image's larger side, and the centre the image's.
--flow: a NumPy file of floating numbers (height, width, 2): the output pixel at (x, y) reads the
input at (x + dx, y + dy), and where one is NaN outside. Its size is the output's.

Filtering happens on the stored, gamma-encoded values, as image tools do. Colours are weighted
by alpha, so a clear pixel does not bleed into its neighbours. An image made much smaller shows
aliasing, unless --antialias smooths it first, as far as each pixel of the output shrinks it.

PNG, JPEG, TIFF and WebP are read and written. 8 and 16 bits stay what they are where the
output's format can hold it (PNG, TIFF: both; JPEG, WebP: 8). PNG, TIFF and WebP are written
losslessly, JPEG in quality 95. EXIF orientation is applied; a colour profile is kept if it fits
the output's channels. A file at OUT is replaced, IN itself too, by a rename: at every moment
it is whole. The images of a folder are read, warped and written at the same time, and at most
2 N + 3 of them are in memory, N being the number of cores, or 16 of more. A broken one is
reported and left out; the exit code is then 2.
"""

import argparse
import sys
from collections.abc import Sequence

from .errors import UserError
from .extra import check_extra
from .grammar import PARTS, WHOLE_TRANSFORMS, build_parser, shielded


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv`, by default the program's own; returns the exit code.

    0 is success, 2 a mistake that was explained in one sentence on standard error, 130 an interrupt.
    """
    argv = sys.argv[1:] if argv is None else argv
    commands = {"warp": run_warp, "info": run_info}
    try:
        options = build_parser(__doc__).parse_args([shielded(argument) for argument in argv])
        return commands[options.command](options)
    except UserError as error:
        print(f"jaxtex: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("jaxtex: error: interrupted", file=sys.stderr)
        return 130


def run_info(options: argparse.Namespace) -> int:
    """`jaxtex info`."""
    from .info import info

    return info()


def run_warp(options: argparse.Namespace) -> int:
    """`jaxtex warp`."""
    check_together(options)
    check_extra()
    # Only now, since a mistake in the options is told before JAX starts.
    import jax

    from ..sampler import Sampler
    from .decode import quiet_codecs
    from .devices import device_named
    from .files import warp_file
    from .folders import warp_folder
    from .jobs import Job
    from .transforms import transform_of
    from .warp import Reading

    source, target = options.source, options.target
    sampler = Sampler(address_mode=options.address_mode, filter_mode=options.filter_mode)
    settings = {name: getattr(options, name) for name in ("size", "border", "compare")}
    device = device_named(*options.device)
    with jax.default_device(device), quiet_codecs():
        job = Job(transform_of(options), Reading(sampler, options.antialias), device, **settings)
        job.transform.check()
        if source.is_dir():
            return warp_folder(source, target, job)
        return warp_file(source, target / source.name if target.is_dir() else target, job)


def check_together(options: argparse.Namespace) -> None:
    """Options that exclude each other, or have no effect on each other."""
    given = [name for name in (*WHOLE_TRANSFORMS, *PARTS) if getattr(options, name) is not None]
    if len(given) > 1 and given[0] in WHOLE_TRANSFORMS:
        raise UserError(f"--{given[0]} is the whole transform and cannot be combined with --{given[1]}")
    if options.camera and options.lens is None and options.distort is None:
        raise UserError("--camera has no effect without --lens or --distort")
    if options.border is not None and options.address_mode != "border":
        raise UserError(f"--border-color has no effect with --address {options.address_mode}")
    if options.antialias and options.filter_mode == "point":
        raise UserError("--antialias blends texels and cannot be combined with --filter point")
