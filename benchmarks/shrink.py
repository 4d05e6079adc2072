"""`python -m benchmarks.shrink`: how near shrunk images come to a fine reference, and what they cost.

The reference of a pixel is the mean of 16 x 16 linear reads in it. A figure is the peak signal-to-noise ratio in
decibels, of errors squared and averaged over all images but for a margin: higher is better, and 6 dB halve the error.
The last column is the time over that of a plain read of the same pixels. Images are a photograph of the examples, those
of scikit-learn and scikit-image that are installed, and a zone plate, which has the second figure. OpenCV takes part
where it is installed.
"""

import argparse
import functools
import importlib.util
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

import jaxtex as jt

from .environment import environment
from .peers.protocol import optional, wait
from .timing import side_by_side

READS, MARGIN, DEGREES = 16, 2, 30.0
COFFEE = Path(__file__).parent.parent / "examples" / "data" / "coffee.png"
OTHERS = ("astronaut.png", "chelsea.png")
Method = Callable[[Any], Any]
cv2: Any = optional("cv2")


class Map(NamedTuple):
    """A map from the output to an image, by a homography for each size.

    Attributes:
        turn: degrees.
        steps: pixels of the image in a pixel of the output, along x and y.
        tilt: how far the plane leans back, from 0 to below 1.
    """

    name: str
    steps: tuple[float, float]
    turn: float = 0.0
    tilt: float = 0.0

    def output(self, sizes: tuple[int, int]) -> tuple[int, int]:
        return round(sizes[0] / self.steps[1]), round(sizes[1] / self.steps[0])

    def matrix(self, sizes: tuple[int, int], output: tuple[int, int]) -> np.ndarray:
        """From pixels of the output to those of the image, (3, 3)."""
        cos, sin = math.cos(math.radians(self.turn)), math.sin(math.radians(self.turn))
        scales = [n / m for n, m in zip(sizes[::-1], output[::-1])] if not self.turn else self.steps
        linear = np.array([[cos, -sin], [sin, cos]]) @ np.diag(scales)
        lean = np.array([[1, 0, 0], [0, 1, 0], [0, self.tilt / output[0] * 2, 1]])
        to_middle = np.array([[1, 0, -output[1] / 2], [0, 1, -output[0] / 2], [0, 0, 1]])
        from_middle = np.array([[1, 0, sizes[1] / 2], [0, 1, sizes[0] / 2], [0, 0, 1]])
        return (
            from_middle @ np.block([[linear, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]]) @ lean @ to_middle
        )


RESIZES = [Map(f"resized by {step}", (step, step)) for step in (1.3, 3.7, 8.0)]
WARPS = [
    *(Map(f"turned, shrunk by {step}", (step, step), DEGREES) for step in (1.0, 1.3, 2.0, 3.7, 8.0)),
    Map("turned, shrunk by 5 and 1.5", (5.0, 1.5), 20.0),
    Map("tilted", (3.0, 3.0), 0.0, 0.7),
]


def images(small: bool) -> dict[str, np.ndarray]:
    """Photographs and a zone plate, (H, W, 3) float32 from 0 to 1."""
    found = {"coffee": np.asarray(Image.open(COFFEE).convert("RGB"))}
    if importlib.util.find_spec("skimage") and not small:
        folder = Path(importlib.util.find_spec("skimage").submodule_search_locations[0]) / "data"
        found |= {
            name: np.asarray(Image.open(folder / name).convert("RGB")) for name in OTHERS if (folder / name).exists()
        }
    if importlib.util.find_spec("sklearn") and not small:
        from sklearn.datasets import load_sample_images

        found |= dict(zip(("china", "flower"), load_sample_images().images))
    floats = {name: np.float32(image) / 255 for name, image in found.items()}
    if small:
        floats = {name: image[:96, :96] for name, image in floats.items()}
    return floats | {"zone plate": zone_plate(96 if small else 512)}


def zone_plate(size: int) -> np.ndarray:
    """Rings up to half a cycle a pixel at the centers of the edges."""
    along = np.arange(size) + 0.5 - size / 2
    rings = 0.5 + 0.5 * np.cos(np.pi * (along[:, None] ** 2 + along**2) / size)
    return np.repeat(np.float32(rings)[..., None], 3, -1)


@functools.partial(jax.jit, static_argnames="output")
def reference(image: jax.Array, matrix: jax.Array, output: tuple[int, int]) -> jax.Array:
    """The mean of READS x READS linear reads in each pixel."""

    def row(k: Any, total: jax.Array) -> jax.Array:
        x, y = ((k % READS) + 0.5) / READS - 0.5, ((k // READS) + 0.5) / READS - 0.5
        moved = matrix @ jnp.array([[1, 0, x], [0, 1, y], [0, 0, 1]])
        return total + jt.warp.warp_perspective(image, moved, output, inverse_map=True, address_mode="clamp")

    return jax.lax.fori_loop(0, READS**2, row, jnp.zeros((*output, 3))) / READS**2


def resizes(output: tuple[int, int]) -> dict[str, Method]:
    filters = ("area", "linear", "cubic", "mitchell", "lanczos3", "gaussian")
    found: dict[str, Method] = {
        f"resize, {name}": functools.partial(jt.warp.resize, output_shape=output, filter_mode=name) for name in filters
    }
    plain = functools.partial(jt.warp.resize, output_shape=output, antialias=False)
    for name in ("linear", "cubic", "lanczos3"):
        found[f"jax.image, {name}"] = jax.jit(lambda image, name=name: jax.image.resize(image, (*output, 3), name))
    if cv2 is not None:
        found["OpenCV INTER_AREA"] = lambda image: cv2.resize(image, output[::-1], interpolation=cv2.INTER_AREA)
    for name in ("BOX", "BILINEAR", "BICUBIC", "LANCZOS"):
        found[f"Pillow {name}"] = functools.partial(with_pillow, output=output, name=name)
    return {"plain": plain, **found}


def with_pillow(image: np.ndarray, output: tuple[int, int], name: str) -> np.ndarray:
    channels = [Image.fromarray(image[..., k]).resize(output[::-1], getattr(Image.Resampling, name)) for k in range(3)]
    return np.stack([np.asarray(channel) for channel in channels], -1)


def warps(of: Map, sizes: tuple[int, int], output: tuple[int, int]) -> dict[str, Method]:
    matrix = jnp.float32(of.matrix(sizes, output))
    warp = functools.partial(
        jt.warp.warp_perspective, matrix=matrix, output_shape=output, inverse_map=True, address_mode="clamp"
    )
    if not of.tilt:
        warp = functools.partial(
            jt.warp.warp_affine, matrix=matrix[:2], output_shape=output, inverse_map=True, address_mode="clamp"
        )
    smoothed = {"antialias": {}, "bias -0.25": {"mipmap_level_bias": -0.25}, "bias 0.25": {"mipmap_level_bias": 0.25}}
    smoothed |= {
        f"max_anisotropy={n}": {"max_anisotropy": n} for n in ((4, 16) if of.tilt or len({*of.steps}) > 1 else ())
    }
    found: dict[str, Method] = {
        name: functools.partial(warp, antialias=True, sampler=jt.Sampler(**options))
        for name, options in smoothed.items()
    }
    if of.turn and of.steps[0] == of.steps[1]:
        small = tuple(round(n / of.steps[0]) for n in sizes)
        turn = Map("", (1.0, 1.0), of.turn)
        after = jnp.float32(turn.matrix(small, output))[:2]
        for name in ("lanczos3", "area"):

            def in_two_steps(image: Any, name: str = name) -> jax.Array:
                resized = jt.warp.resize(image, small, filter_mode=name)
                return jt.warp.warp_affine(resized, after, output, inverse_map=True, address_mode="clamp")

            found[f"resize, {name}, and a turn"] = jax.jit(in_two_steps)
    return {"plain": warp, **found}


def inside(of: Map, sizes: tuple[int, int], output: tuple[int, int]) -> np.ndarray:
    """The pixels of the output that show the image, but for a margin."""
    y, x = np.indices(output) + 0.5
    u, v, w = np.tensordot(of.matrix(sizes, output), np.stack([x, y, np.ones_like(x)]), 1)
    reach = MARGIN * max(of.steps)
    return (u > reach * w) & (v > reach * w) & (u < (sizes[1] - reach) * w) & (v < (sizes[0] - reach) * w) & (w > 0)


def decibels(squares: list[np.ndarray]) -> float:
    return -10 * math.log10(max(float(np.mean(np.concatenate(squares))), 1e-10))


def row_of(of: Map, pictures: dict[str, np.ndarray], seconds: float) -> list[str]:
    """The lines of a table."""
    errors: dict[str, dict[bool, list[np.ndarray]]] = {}
    times: dict[str, float] = {}
    for name, image in pictures.items():
        sizes = image.shape[:2]
        output = of.output(sizes)
        methods = warps(of, sizes, output) if of in WARPS else resizes(output)
        expected = np.asarray(reference(image, np.float32(of.matrix(sizes, output)), output))
        within = inside(of, sizes, output)
        for method, run in methods.items():
            squares = ((np.asarray(run(image)) - expected)[within] ** 2).ravel()
            errors.setdefault(method, {True: [], False: []})[name == "zone plate"].append(squares)
        if name == "coffee" and seconds:
            on_device = jnp.asarray(image)
            runs = {
                method: (
                    lambda run=run, at=image if "OpenCV" in method or "Pillow" in method else on_device: run(at),
                    wait,
                )
                for method, run in methods.items()
            }
            times = side_by_side(runs, seconds, of.name)
    lines = []
    for method, found in errors.items():
        cost = f"{times[method] / times['plain']:.1f}" if times else ""
        lines.append(f"| {of.name} | {method} | {decibels(found[False]):.1f} | {decibels(found[True]):.1f} | {cost} |")
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shrink", description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="time for the speeds of a table; 0 leaves them out")
    parser.add_argument(
        "--only", type=re.compile, default=re.compile(""), help="a regular expression: maps that have it"
    )
    parser.add_argument("--small", action="store_true", help="parts of two images, to try it")
    options = parser.parse_args(argv)
    print(", ".join(f"{key} {value}" for key, value in environment().items()))
    pictures = images(options.small)
    print(f"images: {', '.join(pictures)}\n\n| map | method | photographs, dB | zone plate, dB | time |")
    print("|---|---|---|---|---|")
    for of in (*RESIZES, *WARPS):
        if options.only.search(of.name):
            print(*row_of(of, pictures, options.seconds), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
