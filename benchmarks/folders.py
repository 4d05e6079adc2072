"""`python -m benchmarks.folders`: `jaxtex warp` and `resize` of a folder of photographs beside OpenCV and Pillow.

    python -m benchmarks.folders --folder photographs

makes a hundred JPEG files of 3840x2160 from the photograph of the examples, once, each another part of it with noise
of its own, and turns them by 20 degrees, with the linear filter, into JPEG files of quality 95 without subsampling: in
a loop over `cv2.imread`, `cv2.warpAffine` and `cv2.imwrite`, by the same in as many threads as there are cores, and by
the command line, in this process and as a program of its own, which starts and compiles. Rounds alternate between
them; the table has medians over rounds, of the ratio as well: of speed, and of the CPU time of all cores, which other
work on the machine changes less. Needs OpenCV, which the extra bench installs.

    python -m benchmarks.folders --folder photographs --mixed --images 1000 --fit 256 256

takes photographs that all have another size, the longer side from 300 to 1600, and makes them fit 256x256, with the
linear filter as wide as the step, by a loop over Pillow in one thread and by the command line. `--mixed` alone turns
them.
"""

import argparse
import contextlib
import functools
import io
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
from PIL import Image
from tqdm import tqdm

from jaxtex.cli import main as jaxtex_command

from .environment import environment

PHOTOGRAPH = pathlib.Path(__file__).parent.parent / "examples" / "data" / "coffee.png"
DEGREES, QUALITY = 20, 95
ENCODING = (
    *(cv2.IMWRITE_JPEG_QUALITY, QUALITY),
    *(cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444),
)
# OpenCV rounds positions to a 32nd of a pixel: of codes from 0 to 255, on average.
SAME_WORK = 1.5
LONGER_SIDES = 300, 1600
Run = Callable[[pathlib.Path, pathlib.Path], None]


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.folders", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--folder",
        type=pathlib.Path,
        required=True,
        help="for the photographs, and for the time of the run what becomes of them",
    )
    parser.add_argument("--images", type=int, default=100, help="how many photographs (100)")
    parser.add_argument("--size", type=int, nargs=2, default=(3840, 2160), metavar=("W", "H"), help="(3840 2160)")
    parser.add_argument("--mixed", action="store_true", help="photographs of another size each, in place of --size")
    parser.add_argument("--fit", type=int, nargs=2, metavar=("W", "H"), help="resize, beside Pillow")
    parser.add_argument("--rounds", type=int, default=5, help="how often each runs (5)")
    return parser


def mixed_sizes(count: int) -> list[tuple[int, int]]:
    """Widths and heights that all differ: of short sides as often as of long ones, upright and lying."""
    random, found = np.random.default_rng(0), dict[tuple[int, int], None]()
    while len(found) < count:
        longer = LONGER_SIDES[0] * (LONGER_SIDES[1] / LONGER_SIDES[0]) ** random.uniform()
        size = round(longer), round(longer * random.uniform(0.55, 1))
        found[size if random.uniform() < 0.6 else size[::-1]] = None
    return list(found)


def photographs(folder: pathlib.Path, sizes: Sequence[tuple[int, int]]) -> None:
    """Makes the files that are not there yet."""
    with Image.open(PHOTOGRAPH) as image:
        whole = image.convert("RGB")
    for k, size in enumerate(tqdm(sizes, desc="photographs", unit="image", leave=False, disable=None)):
        path = folder / f"{k:03}.jpg"
        if path.exists():
            continue
        random = np.random.default_rng(k)
        share = random.uniform(0.6, 1)
        left, top = (random.uniform(0, n * (1 - share)) for n in whole.size)
        box = (left, top, left + whole.width * share, top + whole.height * share)
        pixels = np.asarray(whole.resize(size, Image.Resampling.BICUBIC, box), np.float32)
        noise = random.normal(0, 4, pixels.shape).astype(np.float32)
        bright = np.clip(pixels * random.uniform(0.7, 1.2) + noise, 0, 255).astype(np.uint8)
        Image.fromarray(bright).save(path, quality=92)


def opencv_image(source: pathlib.Path, target: pathlib.Path) -> None:
    """One image, with the center of the image as the center of the turn: in OpenCV pixels have centers at +0."""
    image = cv2.imread(str(source))
    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), DEGREES, 1)
    cv2.imwrite(str(target / source.name), cv2.warpAffine(image, matrix, (width, height)), ENCODING)


def opencv_loop(source: pathlib.Path, target: pathlib.Path) -> None:
    for path in sorted(source.iterdir()):
        opencv_image(path, target)


def opencv_threads(source: pathlib.Path, target: pathlib.Path) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(functools.partial(opencv_image, target=target), sorted(source.iterdir())))


def pillow_loop(source: pathlib.Path, target: pathlib.Path, fit: tuple[int, int]) -> None:
    for path in sorted(source.iterdir()):
        with Image.open(path) as image:
            scale = min(1, *(most / n for most, n in zip(fit, image.size)))
            width, height = (max(1, round(scale * n)) for n in image.size)
            small = image.resize((width, height), Image.Resampling.BILINEAR)
        small.save(target / path.name, quality=QUALITY, subsampling=0)


def jaxtex_here(source: pathlib.Path, target: pathlib.Path, words: Sequence[str]) -> None:
    command, *options = words
    with contextlib.redirect_stdout(io.StringIO()):
        if jaxtex_command([command, str(source), str(target), *options]):
            raise RuntimeError(f"jaxtex {command} failed")


def jaxtex_program(source: pathlib.Path, target: pathlib.Path, words: Sequence[str]) -> None:
    command, *options = words
    arguments = [sys.executable, "-m", "jaxtex", command, str(source), str(target), *options]
    # An installed program is compiled to bytecode, whatever this environment says.
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(arguments, check=True, capture_output=True, env=surroundings)


def runs(fit: tuple[int, int] | None) -> dict[str, Run]:
    """What is compared, the loop first."""
    if fit is None:
        words = ["warp", "--rotate", str(DEGREES), "--filter", "linear"]
        others: dict[str, Run] = {"OpenCV, a loop": opencv_loop, "OpenCV, threads": opencv_threads}
    else:
        words = ["resize", "--fit", "{}x{}".format(*fit), "--filter", "linear"]
        others = {"Pillow, a loop": functools.partial(pillow_loop, fit=fit)}
    return {
        **others,
        f"jaxtex {words[0]}": functools.partial(jaxtex_here, words=words),
        f"jaxtex {words[0]}, as a program": functools.partial(jaxtex_program, words=words),
    }


def cpu_seconds() -> float:
    """Of this process, and of those that it waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def check_same_work(folders: Sequence[pathlib.Path]) -> None:
    """All results look like the first's."""
    for name in sorted(path.name for path in folders[0].iterdir()):
        first, *rest = (cv2.imread(str(folder / name)).astype(np.float32) for folder in folders)
        for folder, image in zip(folders[1:], rest):
            if not (off := np.abs(image - first).mean()) < SAME_WORK:
                raise RuntimeError(f"{folder / name} is off by {off:.2f} on average")


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    compared = runs(options.fit)
    loop, *_ = compared
    of_size = "mixed sizes" if options.mixed else "{}x{}".format(*options.size)
    source = options.folder / f"in-{of_size.replace(' ', '-')}"
    source.mkdir(parents=True, exist_ok=True)
    photographs(source, mixed_sizes(options.images) if options.mixed else [tuple(options.size)] * options.images)
    print(", ".join(f"{key} {value}" for key, value in environment().items()), f"cores {os.cpu_count()}", sep=", ")
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in compared}
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as results,
        tqdm(total=(options.rounds + 1) * len(compared), unit="run", leave=False, disable=None) as progress,
    ):
        for number in range(options.rounds + 1):
            # All files are new: a file system may take long to replace one.
            targets = {name: pathlib.Path(results, f"{number}-{k}") for k, name in enumerate(compared)}
            for name, run in compared.items():
                progress.set_description(name)
                targets[name].mkdir()
                start = time.perf_counter(), cpu_seconds()
                run(source, targets[name])
                if number:  # the first round warms up files and programs
                    taken[name].append((time.perf_counter() - start[0], cpu_seconds() - start[1]))
                progress.update()
            if not number:
                check_same_work(list(targets.values()))
    count = len(list(source.iterdir()))
    print(f"{count} photographs, {of_size}, median of {options.rounds} rounds")
    for name, rounds in taken.items():
        speed = statistics.median(count / wall for wall, _ in rounds)
        faster, busier = (
            statistics.median(first[k] / own[k] for first, own in zip(taken[loop], rounds)) for k in range(2)
        )
        print(f"{name:<28}{speed:7.2f} images/s{faster:7.2f} of the loop's speed{1 / busier:7.2f} of its CPU time")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
