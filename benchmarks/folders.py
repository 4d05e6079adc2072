"""`python -m benchmarks.folders`: `jaxtex warp` of a folder of photographs beside a loop over OpenCV.

    python -m benchmarks.folders --folder photographs

makes a hundred JPEG files of 3840x2160 from the photograph of the examples, once, each another part of it with noise
of its own, and turns them by 20 degrees, with the linear filter, into JPEG files of quality 95 without subsampling: in
a loop over `cv2.imread`, `cv2.warpAffine` and `cv2.imwrite`, by the same in as many threads as there are cores, and by
the command line, in this process and as a program of its own, which starts and compiles. Rounds alternate between
them; the table has medians over rounds, of the ratio as well. Needs OpenCV, which the extra bench installs.
"""

import argparse
import contextlib
import functools
import io
import os
import pathlib
import statistics
import subprocess
import sys
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
LOOP = "OpenCV, a loop"
Run = Callable[[pathlib.Path, pathlib.Path], None]


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.folders", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--folder", type=pathlib.Path, required=True, help="for the photographs and what becomes of them"
    )
    parser.add_argument("--images", type=int, default=100, help="how many photographs (100)")
    parser.add_argument("--size", type=int, nargs=2, default=(3840, 2160), metavar=("W", "H"), help="(3840 2160)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each runs (5)")
    return parser


def photographs(folder: pathlib.Path, count: int, size: tuple[int, int]) -> None:
    """Makes the files that are not there yet."""
    width, height = size
    with Image.open(PHOTOGRAPH) as image:
        whole = image.convert("RGB")
    for k in tqdm(range(count), desc="photographs", unit="image", leave=False, disable=None):
        path = folder / f"{k:03}.jpg"
        if path.exists():
            continue
        random = np.random.default_rng(k)
        share = random.uniform(0.6, 1)
        left, top = (random.uniform(0, n * (1 - share)) for n in whole.size)
        box = (left, top, left + whole.width * share, top + whole.height * share)
        pixels = np.asarray(whole.resize((width, height), Image.Resampling.BICUBIC, box), np.float32)
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


def jaxtex_arguments(source: pathlib.Path, target: pathlib.Path) -> list[str]:
    return ["warp", str(source), str(target), "--rotate", str(DEGREES)]


def jaxtex_here(source: pathlib.Path, target: pathlib.Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        if jaxtex_command(jaxtex_arguments(source, target)):
            raise RuntimeError("jaxtex warp failed")


def jaxtex_program(source: pathlib.Path, target: pathlib.Path) -> None:
    command = [sys.executable, "-m", "jaxtex", *jaxtex_arguments(source, target)]
    subprocess.run(command, check=True, capture_output=True)


RUNS: dict[str, Run] = {
    LOOP: opencv_loop,
    "OpenCV, threads": opencv_threads,
    "jaxtex warp": jaxtex_here,
    "jaxtex warp, as a program": jaxtex_program,
}


def check_same_work(folders: Sequence[pathlib.Path]) -> None:
    """All results look like the first's."""
    for name in sorted(path.name for path in folders[0].iterdir()):
        first, *rest = (cv2.imread(str(folder / name)).astype(np.float32) for folder in folders)
        for folder, image in zip(folders[1:], rest):
            if not (off := np.abs(image - first).mean()) < SAME_WORK:
                raise RuntimeError(f"{folder / name} is off by {off:.2f} on average")


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    source = options.folder / "in-{}x{}".format(*options.size)
    targets = {name: options.folder / f"out-{k}" for k, name in enumerate(RUNS)}
    for folder in (source, *targets.values()):
        folder.mkdir(parents=True, exist_ok=True)
    photographs(source, options.images, options.size)
    print(", ".join(f"{key} {value}" for key, value in environment().items()), f"cores {os.cpu_count()}", sep=", ")
    seconds: dict[str, list[float]] = {name: [] for name in RUNS}
    with tqdm(total=(options.rounds + 1) * len(RUNS), unit="run", leave=False, disable=None) as progress:
        for number in range(options.rounds + 1):
            for name, run in RUNS.items():
                progress.set_description(name)
                start = time.perf_counter()
                run(source, targets[name])
                if number:  # the first round warms up files and programs
                    seconds[name].append(time.perf_counter() - start)
                progress.update()
            if not number:
                check_same_work(list(targets.values()))
    count = len(list(source.iterdir()))
    print(f"{count} photographs of {options.size[0]}x{options.size[1]}, median of {options.rounds} rounds")
    for name, taken in seconds.items():
        speed = statistics.median(count / s for s in taken)
        ratio = statistics.median(loop / s for loop, s in zip(seconds[LOOP], taken))
        print(f"{name:<28}{speed:6.2f} images/s{ratio:7.2f} of the loop's speed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
