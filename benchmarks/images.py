"""`python -m benchmarks.images`: warps of images on a CPU beside OpenCV and Pillow.

A turn by 20 degrees, with zeros outside (OpenCV's `warpAffine`), the same by arrays of coordinates (`remap`), and
`resize` by filters as wide as the step: to several shares of the size (OpenCV's `INTER_AREA`), and 3.7 times smaller
(Pillow's filters). Two figures a library: the time that passes, and that of the CPU, all cores together, which other
programs on the machine disturb less. Medians over rounds in which each runs once, and of the ratios in each round.
`--arrays numpy` gives jaxtex arrays of NumPy and asks for one, as OpenCV does; `--arrays aligned` does so with arrays
that begin at a multiple of 64 bytes, which JAX takes without a copy. Needs OpenCV, which the extra bench installs.
"""

import argparse
import functools
import operator
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cv2
import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image
from tqdm import tqdm

import jaxtex as jt

from .environment import environment

DEGREES, SHRINK = 20.0, 3.7
AREA_FACTORS = (0.2, 1 / 3, 0.5, 2 / 3, 0.75, 0.9)
FILTERS = {"point": cv2.INTER_NEAREST, "linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC}
PILLOW_FILTERS = {"linear": "BILINEAR", "cubic": "BICUBIC", "lanczos3": "LANCZOS"}
# OpenCV rounds positions to a 32nd of a pixel, and its cubic filter has another coefficient: of noise from 0 to 255.
SAME_WORK = 12.0
OURS, RATIO = "jaxtex", "ratio"
# The arrays that jaxtex takes and returns: of JAX, of NumPy, or of NumPy where JAX takes them without a copy.
ARRAYS, ALIGNMENT = ("jax", "numpy", "aligned"), 64
Run = Callable[[], Any]


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of `ALIGNMENT` bytes."""
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def by_jaxtex(function: Callable[..., jax.Array], arrays: str, *args: np.ndarray) -> Run:
    """A call of a function of the library, with arguments and a result that are arrays of this kind."""
    if arrays == "jax":
        return functools.partial(jax.jit(function), *map(jnp.asarray, args))
    given = [aligned(a) if arrays == "aligned" else a for a in args]
    return lambda: np.asarray(function(*given))


def noise(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8).astype(dtype)


def rows(size: tuple[int, int], arrays: str) -> Iterator[tuple[str, Callable[[], dict[str, Run]]]]:
    """The name of each row, and what makes the calls of the libraries."""
    for dtype in ("uint8", "float32"):
        for channels in (1, 3, 4):
            shape = (*size, channels)
            for kind, make in (("warpAffine", turns), ("remap", remaps)):
                for name in FILTERS:
                    yield f"{kind}, {dtype}, C={channels}, {name}", functools.partial(make, arrays, shape, dtype, name)
            for factor in AREA_FACTORS:
                make = functools.partial(resizes, arrays, shape, dtype, "area", factor)
                yield f"resize, {dtype}, C={channels}, area to {factor:.3g}", make
            # Pillow has numbers of float32 in images of one channel alone.
            for name in PILLOW_FILTERS if dtype == "uint8" or channels == 1 else ():
                make = functools.partial(resizes, arrays, shape, dtype, name, 1 / SHRINK)
                yield f"resize, {dtype}, C={channels}, {name} to {1 / SHRINK:.3g}", make


def turn(shape: tuple[int, ...]) -> np.ndarray:
    """OpenCV's matrix of a turn about the center, from the image to the output."""
    height, width, _ = shape
    return cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), DEGREES, 1)


def turns(arrays: str, shape: tuple[int, ...], dtype: str, name: str) -> dict[str, Run]:
    image, matrix, size = noise(shape, dtype), turn(shape), shape[1::-1]
    run = functools.partial(cv2.warpAffine, image, matrix, size, flags=FILTERS[name])
    ours = by_jaxtex(lambda image: jt.warp.rotate(image, angle=jnp.deg2rad(DEGREES), filter_mode=name), arrays, image)
    return {OURS: ours, "OpenCV": run}


def remaps(arrays: str, shape: tuple[int, ...], dtype: str, name: str) -> dict[str, Run]:
    image, inverse = noise(shape, dtype), cv2.invertAffineTransform(turn(shape))
    y, x = np.indices(shape[:2], np.float32)
    points = [np.float32(row[0] * x + row[1] * y + row[2]) for row in inverse]
    remap = lambda image, x, y: jt.warp.remap(image, (x, y), filter_mode=name)
    ours = by_jaxtex(remap, arrays, image, points[0] + np.float32(0.5), points[1] + np.float32(0.5))
    return {OURS: ours, "OpenCV": functools.partial(cv2.remap, image, *points, FILTERS[name])}


def resizes(arrays: str, shape: tuple[int, ...], dtype: str, name: str, factor: float) -> dict[str, Run]:
    image, size = noise(shape, dtype), (round(shape[0] * factor), round(shape[1] * factor))
    run = by_jaxtex(lambda image: jt.warp.resize(image, size, filter_mode=name), arrays, image)
    if name == "area":
        return {OURS: run, "OpenCV": functools.partial(cv2.resize, image, size[::-1], interpolation=cv2.INTER_AREA)}
    picture = Image.fromarray(image.squeeze(-1) if shape[-1] == 1 else image)
    return {OURS: run, "Pillow": functools.partial(picture.resize, size[::-1], Image.Resampling[PILLOW_FILTERS[name]])}


def check_same_work(name: str, runs: dict[str, Run]) -> None:
    ours, other = (np.float32(run()).squeeze() for run in runs.values())
    if not (off := np.abs(ours - other).mean()) < SAME_WORK:
        raise RuntimeError(f"{name}: results differ by {off:.2f} on average")


def measured(runs: dict[str, Run], rounds: int) -> list[dict[str, float]]:
    """Milliseconds that passed, and those of the CPU, of each library and as a ratio of the first to the other."""
    found: list[dict[str, list[float]]] = [{name: [] for name in runs} for _ in range(2)]
    for _ in range(rounds):
        for name, run in runs.items():
            passed, used = time.perf_counter(), time.process_time()
            jax.block_until_ready(run())
            found[0][name].append(1e3 * (time.perf_counter() - passed))
            found[1][name].append(1e3 * (time.process_time() - used))
    ratios = [statistics.median(map(operator.truediv, *times.values())) for times in found]
    medians = ({name: statistics.median(some) for name, some in times.items()} for times in found)
    return [{**times, RATIO: ratio} for times, ratio in zip(medians, ratios)]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.images", description=__doc__)
    parser.add_argument("--size", type=int, nargs=2, default=(3840, 2160), metavar=("W", "H"), help="(3840 2160)")
    parser.add_argument("--rounds", type=int, default=15, help="how often each runs (15)")
    parser.add_argument("--cores", type=int, help="threads of OpenCV (all cores); those of XLA are all that it may use")
    parser.add_argument("--arrays", choices=ARRAYS, default="jax", help="what jaxtex takes and returns (jax)")
    parser.add_argument("--only", type=re.compile, help="a regular expression: rows whose name has it")
    options = parser.parse_args(argv)
    if options.cores:
        cv2.setNumThreads(options.cores)
    print(
        ", ".join(f"{key} {value}" for key, value in environment().items()),
        f"OpenCV threads {cv2.getNumThreads()}, arrays {options.arrays}",
    )
    print(f"{'milliseconds, and of the CPU':36s}{OURS:>16s}{'other':>16s}   ratios")
    wanted = [
        row for row in rows(options.size[::-1], options.arrays) if not options.only or options.only.search(row[0])
    ]
    for name, make in tqdm(wanted, unit=" rows", leave=False, disable=None):
        runs = make()
        check_same_work(name, runs)
        passed, used = measured(runs, options.rounds)
        other = next(library for library in runs if library != OURS)
        columns = "".join(f"{passed[library]:8.1f}{used[library]:8.1f}" for library in runs)
        print(f"{name:36s}{columns}   {passed[RATIO]:.2f} {used[RATIO]:.2f} {other}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
