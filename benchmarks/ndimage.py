"""`python -m benchmarks.ndimage`: `jaxtex.ndimage` beside SciPy on a CPU and CuPy's `cupyx.scipy.ndimage` on a GPU.

A column of milliseconds for each library that is installed, side by side in one process, then ours over each of theirs;
last what ours takes with gradients to the array and, where there are some, to the coordinates, matrix or shift.
"""

import functools
import importlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt

from .peers.protocol import on_gpu, optional, wait
from .report import Results, parser
from .timing import Start, Wait, side_by_side

DEGREES, FACTOR = 20.0, 1.3
# Results of float32 and of SciPy's float64 may differ by so much of the largest value.
CLOSE = 1e-3


class Case(NamedTuple):
    """One row.

    Attributes:
        function: of `jaxtex.ndimage`, and of the others.
        shape: of the array.
        order: of the spline.
        arguments: those after the array, from a shape; they have gradients if `differentiable`.
    """

    function: str
    shape: tuple[int, ...]
    order: int
    arguments: Callable[[tuple[int, ...]], tuple[Any, ...]]
    differentiable: bool = True

    @property
    def name(self) -> str:
        size = f"{self.shape[0]}^{len(self.shape)}"
        return f"{self.function} {size}, order {self.order}"

    def options(self) -> dict[str, Any]:
        more = {"output": np.float32} if self.function == "spline_filter" else {}
        return {"order": self.order, "mode": "mirror", **more}


def nothing(shape: tuple[int, ...]) -> tuple[Any, ...]:
    del shape
    return ()


def jittered(shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The index of each element, moved by an element or so."""
    moved = np.random.default_rng(1).normal(size=(len(shape), *shape))
    return ((np.indices(shape) + moved).astype(np.float32),)


def turn(shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A rotation of the last two axes about the middle."""
    angle, matrix = np.deg2rad(DEGREES), np.eye(len(shape))
    matrix[-2:, -2:] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    middle = (np.asarray(shape) - 1) / 2
    return matrix.astype(np.float32), (middle - matrix @ middle).astype(np.float32)


def third(shape: tuple[int, ...]) -> tuple[Any, ...]:
    return (np.full(len(shape), 1 / 3, np.float32),)


def cases(image: int, volume: int) -> list[Case]:
    flat, deep = (image,) * 2, (volume,) * 3
    rows = [Case("spline_filter", shape, order, nothing) for order in (3, 5) for shape in (flat, deep)]
    rows += [Case("map_coordinates", deep, order, jittered) for order in (1, 3)]
    for shape in (flat, deep):
        rows += [Case("affine_transform", shape, order, turn) for order in (1, 3)]
        rows += [Case("zoom", shape, order, lambda _: (FACTOR,), False) for order in (1, 3)]
        rows += [Case("shift", shape, 3, third)]
    return rows


def peer() -> tuple[str, Any, Any] | None:
    """The name of the peer of this device, its functions, and its arrays."""
    if not on_gpu():
        return ("scipy", importlib.import_module("scipy.ndimage"), np) if optional("scipy") is not None else None
    cupy = optional("cupy")
    return None if cupy is None else ("cupy", importlib.import_module("cupyx.scipy.ndimage"), cupy)


def runs_of(case: Case) -> dict[str, tuple[Start, Wait]]:
    """What each library runs for a row. The peer's result is compared with ours first."""
    array = np.random.default_rng(0).normal(size=case.shape).astype(np.float32)
    arguments, options = case.arguments(case.shape), case.options()
    ours = functools.partial(getattr(jt.ndimage, case.function), **options)
    static = () if case.differentiable else arguments
    given = [jnp.asarray(a) for a in (array, *(arguments if case.differentiable else ()))]
    forward = jax.jit(lambda *args: ours(*args, *static))

    def gradient(*args: jax.Array) -> tuple[jax.Array, ...]:
        out, pullback = jax.vjp(lambda *args: ours(*args, *static), *args)
        return pullback(out)

    backward = jax.jit(gradient)
    runs = {"jaxtex": (lambda: forward(*given), wait), "gradients": (lambda: backward(*given), wait)}
    if (found := peer()) is not None:
        name, functions, arrays = found
        theirs = [arrays.asarray(a) if isinstance(a, np.ndarray) else a for a in (array, *arguments)]
        function = functools.partial(getattr(functions, case.function), *theirs, **options)
        result, expected = forward(*given), np.asarray(jnp.asarray(function()))
        assert np.abs(np.asarray(result) - expected).max() < CLOSE * np.abs(expected).max(), f"{name} differs"
        runs[name] = (function, (lambda _: arrays.cuda.Device().synchronize()) if name == "cupy" else lambda _: None)
    return runs


def line(case: Case, ms: dict[str, float]) -> str:
    other = next((name for name in ms if name not in ("jaxtex", "gradients")), None)
    theirs = "" if other is None else f"{ms[other]:10.2f} {ms['jaxtex'] / ms[other]:8.2f}"
    return f"{case.name:36s} {ms['jaxtex']:10.2f} {theirs:19s} {ms['gradients']:12.2f}"


def main() -> int:
    arguments = parser("benchmarks.ndimage", __doc__, 3.0)
    arguments.add_argument("--image", type=int, help="side of images (default 4096 on a GPU, else 1024)")
    arguments.add_argument("--volume", type=int, help="side of volumes (default 256 on a GPU, else 128)")
    options = arguments.parse_args()
    results = Results(options)
    found = peer()
    print(f"{'milliseconds':36s} {'jaxtex':>10s} {found[0] if found else '':>10s} {'ratio':>8s} {'gradients':>12s}")
    image, volume = options.image or (4096 if on_gpu() else 1024), options.volume or (256 if on_gpu() else 128)
    for case in cases(image, volume):
        if re.search(options.only, case.name):
            ms = side_by_side(runs_of(case), options.seconds, case.name)
            results.add(case.name, milliseconds=ms)
            print(line(case, ms), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
