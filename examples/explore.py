"""A page in the browser that warps an image while you move sliders.

    python examples/explore.py examples/data/coffee.png

It shows the warped image, the difference between float and hardware arithmetic, the call in Python that makes the
image, and the command if there is one. The page needs Panel, which the extra `explore` installs.

Rotation, scale and tilt are operands of the programs that JAX compiles, and the modes are static: so a slider compiles
nothing, and each combination of modes is compiled once.
"""

import argparse
import math
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageOps

import jaxtex as jt

FILTERS = [mode.value for mode in jt.FilterMode]
ADDRESSES = [mode.value for mode in jt.AddressMode]
# The camera stands this many of the longer sides of the image in front of its center. From there, no tilt up to the
# largest one brings the horizon into the output.
DISTANCE, LARGEST_TILT = 1.2, 65


class View(NamedTuple):
    """What the controls say: degrees, a factor, degrees that the turned image leans back, and modes."""

    degrees: float = 20.0
    scale: float = 1.0
    tilt: float = 0.0
    filter_mode: str = "linear"
    address_mode: str = "border"
    arithmetic: str = "float"
    antialias: bool = False

    @property
    def modes(self) -> dict[str, Any]:
        sampler = jt.Sampler(arithmetic=self.arithmetic)
        return {
            "sampler": sampler,
            "filter_mode": self.filter_mode,
            "address_mode": self.address_mode,
            "antialias": self.antialias,
        }


def read_image(path: Path, side: int) -> np.ndarray:
    """An image in 8 bits, upright and without alpha, whose longer side has at most `side` pixels."""
    with Image.open(path) as opened:
        image = np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
    factor = min(1, side / max(image.shape[:2]))
    shape = tuple(max(1, round(factor * n)) for n in image.shape[:2])
    return image if factor == 1 else np.asarray(jt.warp.resize(image, shape))


def matrix_of(view: View, width: float, height: float) -> np.ndarray:
    """The homography from points of the image to points of an output of its size, with as few digits as are shown."""
    turn, lean = math.radians(view.degrees), math.radians(view.tilt)
    center = np.array([[1, 0, width / 2], [0, 1, height / 2], [0, 0, 1]])
    cosine, sine = view.scale * math.cos(turn), view.scale * math.sin(turn)
    linear = np.array([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1]])
    # A point (u, v) of the plane lies v sin(tilt) nearer to the camera than the center.
    nearer = -math.sin(lean) / (DISTANCE * max(width, height))
    leant = np.array([[1, 0, 0], [0, math.cos(lean), 0], [0, nearer, 1]])
    matrix = center @ leant @ linear @ np.linalg.inv(center)
    return np.array([[float(f"{element:.8g}") for element in row] for row in matrix])


def warped(image: np.ndarray, view: View) -> np.ndarray:
    """The image as a view shows it, in float32."""
    if view.tilt:
        matrix = matrix_of(view, image.shape[1], image.shape[0]).astype(np.float32)
        return np.asarray(jt.warp.warp_perspective(image, matrix, dtype="float32", **view.modes))
    angle, scale = np.float32(np.deg2rad(view.degrees)), np.float32(view.scale)
    return np.asarray(jt.warp.rotate(image, angle=angle, scale=scale, dtype="float32", **view.modes))


def difference(image: np.ndarray, view: View) -> np.ndarray | None:
    """How much float and hardware arithmetic differ, or `None` if no texture unit has the modes."""
    try:
        return np.abs(
            warped(image, view._replace(arithmetic="float")) - warped(image, view._replace(arithmetic="hardware"))
        )
    except ValueError:
        return None


def to_bytes(values: np.ndarray) -> Image.Image:
    return Image.fromarray(np.rint(np.clip(values, 0, 255)).astype(np.uint8))


def call(view: View, image: np.ndarray) -> str:
    """The Python that warps `image` as a view shows it."""
    options = [f'filter_mode="{view.filter_mode}"', f'address_mode="{view.address_mode}"']
    options += ["antialias=True"] if view.antialias else []
    options += [f'sampler=jt.Sampler(arithmetic="{view.arithmetic}")'] if view.arithmetic != "float" else []
    if not view.tilt:
        options = [f"angle=np.deg2rad({view.degrees:g})", f"scale={view.scale:g}", *options]
        return f"warped = jt.warp.rotate(image, {', '.join(options)})"
    rows = ", ".join(map(str, matrix_of(view, image.shape[1], image.shape[0]).tolist()))
    return f"matrix = np.array([{rows}])\nwarped = jt.warp.warp_perspective(image, matrix, {', '.join(options)})"


def command(view: View, path: Path) -> str | None:
    """The command that warps the file as a view shows it, if there is one."""
    if view.arithmetic != "float" or (view.antialias and view.filter_mode == "point"):
        return None
    with Image.open(path) as opened:
        size = ImageOps.exif_transpose(opened).size
    words = ["--rotate", f"{view.degrees:g}", "--scale", f"{view.scale:g}"]
    if view.tilt:
        words = ["--matrix", *(f"{element:.8g}" for element in matrix_of(view, *size).flat)]
    words += ["--filter", view.filter_mode, "--address", view.address_mode, *["--antialias"] * view.antialias]
    return shlex.join(["jaxtex", "warp", str(path), "warped.png", *words])


def page(path: Path, image: np.ndarray) -> Any:
    """The controls, and what they show."""
    import panel as pn

    start = View()
    controls = {
        "degrees": pn.widgets.FloatSlider(name="Rotation", start=-180, end=180, step=0.5, value=start.degrees),
        "scale": pn.widgets.DiscreteSlider(
            name="Scale", options=[0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0], value=1.0
        ),
        "tilt": pn.widgets.FloatSlider(name="Tilt", start=0, end=LARGEST_TILT, step=1, value=start.tilt),
        "filter_mode": pn.widgets.Select(name="Filter", options=FILTERS, value=start.filter_mode),
        "address_mode": pn.widgets.Select(name="Address mode", options=ADDRESSES, value=start.address_mode),
        "arithmetic": pn.widgets.Select(name="Arithmetic", options=["float", "hardware"], value=start.arithmetic),
        "antialias": pn.widgets.Checkbox(name="Antialias", value=start.antialias),
    }
    factor = pn.widgets.IntSlider(name="Difference times", start=1, end=1024, value=256)

    def show(factor: int, **values: Any) -> Any:
        view = View(**values)
        try:
            picture = pn.pane.PNG(to_bytes(warped(image, view)), alt_text="The warped picture")
        except ValueError as error:  # of modes that do not fit together
            return pn.pane.Alert(str(error), alert_type="warning")
        differs = difference(image, view)
        beside = "No texture unit has these modes."
        if differs is not None:
            beside = pn.pane.PNG(to_bytes(differs * factor), alt_text="The difference")
        texts = [f"```python\n{call(view, image)}\n```", f"```sh\n{command(view, path) or 'There is no command.'}\n```"]
        largest = "" if differs is None else f"Largest difference: {differs.max():.3g} of 255"
        return pn.Column(pn.Row(picture, pn.Column(beside, largest)), *map(pn.pane.Markdown, texts))

    return pn.Row(pn.Column(*controls.values(), factor), pn.bind(show, factor, **controls))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Warp an image in the browser.")
    parser.add_argument("image", type=Path)
    parser.add_argument("--side", type=int, default=480, help="the longest side of the picture on the page")
    parser.add_argument("--port", type=int, default=5006)
    parser.add_argument("--no-browser", action="store_true", help="open no browser")
    args = parser.parse_args(argv)
    image = read_image(args.image, args.side)
    try:
        import panel as pn
    except ImportError:
        parser.error("Panel is not installed; install it in a checkout of jaxtex: pip install '.[explore]'")
    print(f"Open http://127.0.0.1:{args.port} in a browser. Ctrl-C ends the program.", flush=True)
    # Only this machine can open the page.
    pn.serve(
        lambda: page(args.image, image),
        port=args.port,
        address="127.0.0.1",
        show=not args.no_browser,
        verbose=False,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
