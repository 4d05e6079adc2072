"""Draws what the six numbers of an affine spatial transformer mean: theta = [[a, b, c], [d, e, f]].

On the left is the input, with coordinates from -1 to 1. Theta maps points of the output to the input: the frame of the
output to the red frame, its center to (c, f), and the vectors from its center to its right and lower edges to the
arrows (a, d) and (b, e). On the right is the output, which shows the content of the red frame.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from panels import DATA, FAINT, INK, font, save
from PIL import Image, ImageDraw

import jaxtex as jt

PHOTOGRAPH = DATA / "rocket.jpg"
FINE = 2  # the picture is drawn this many times as large, then reduced
MARGIN, GAP, HEAD, TYPE = 58, 0, 14, 24
FRAME, ARROWS = "#d11141", ("#ffd54a", "#7cfc9a")
CORNERS = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
BESIDE = ("lm", 8, 0), ("mt", 0, 8), ("rb", -4, -4)  # anchors and offsets of the names of the arrows and the center
ZOOM, SHIFT = 2.2, (0.1, -0.1)


def place(point: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The position on the panel of a point (x, y), from -1 to 1 across a photograph."""
    return (MARGIN + (point + 1) / 2 * np.array(shape[1::-1])) * FINE


def panel(pixels: np.ndarray, name: str) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """A photograph with its coordinates in the margin."""
    height, width = (FINE * n for n in pixels.shape[:2])
    photograph = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
    picture = Image.new("RGB", (width + 2 * MARGIN * FINE, height + 2 * MARGIN * FINE), "white")
    picture.paste(photograph, (MARGIN * FINE, MARGIN * FINE))
    pen, tick = ImageDraw.Draw(picture), font(0.9 * TYPE * FINE)
    for value in (-1, 0, 1):
        x, y = place(np.array([value, value]), pixels.shape)
        pen.text((x, (MARGIN + 16) * FINE + height), f"{'x=' * (value == 0)}{value}", FAINT, tick, anchor="mm")
        pen.text(((MARGIN - 6) * FINE, y), f"{'y=' * (value == 0)}{value}", FAINT, tick, anchor="rm")
    pen.text((MARGIN * FINE, (MARGIN - 20) * FINE), name, INK, font(TYPE * FINE), anchor="lm")
    return picture, pen


def draw_frame(pen: ImageDraw.ImageDraw, theta: np.ndarray, shape: tuple[int, ...], names: tuple[str, ...]) -> None:
    """Draws the frame of the output, its center and its axes, mapped by theta, on the panel of a photograph."""
    corners = [tuple(place(theta @ (*corner, 1), shape)) for corner in CORNERS]
    pen.line([*corners, *corners[:2]], fill=FRAME, width=4 * FINE, joint="curve")
    middle = place(theta[:, 2], shape)
    tips = [place(theta[:, 2] + theta[:, axis], shape) for axis in (0, 1)]
    for tip, color in zip(tips, ARROWS):
        along = (tip - middle) / np.hypot(*(tip - middle)) * HEAD * FINE
        across = np.array([-along[1], along[0]]) / 2
        pen.line([*middle, *(tip - along)], fill=color, width=4 * FINE)
        pen.polygon([tuple(tip), tuple(tip - along + across), tuple(tip - along - across)], fill=color)
    text = {"fill": "white", "font_size": TYPE * FINE, "stroke_width": 2 * FINE, "stroke_fill": "black"}
    for point, name, (anchor, *offset) in zip((*tips, middle), names, BESIDE):
        pen.text(tuple(point + np.array(offset) * FINE), name, anchor=anchor, **text)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw what theta means.")
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), default=(390, 260), help="of the input")
    parser.add_argument("--output-size", type=int, nargs=2, metavar=("W", "H"), default=(312, 260))
    parser.add_argument(
        "--degrees", type=float, default=20.0, help="the counter-clockwise rotation of the content of the frame"
    )
    parser.add_argument("--out", type=Path, default=Path("theta.png"))
    args = parser.parse_args(argv)

    with Image.open(PHOTOGRAPH) as photograph:
        image = np.asarray(photograph.convert("RGB").resize(args.size))
    angle = math.radians(args.degrees)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    # In pixels the frame is smaller than the output by ZOOM; half a side of the input is 1.
    linear = turn * (np.array(args.output_size) / 2 / ZOOM) / (np.array(args.size)[:, None] / 2)
    theta = np.column_stack([linear, SHIFT])
    output = np.asarray(jt.warp.spatial_transform(image, theta.astype(np.float32), args.output_size[::-1]))
    for row, axis in zip(theta, "xy"):
        print(f"{axis} of the input = {row[0]:.3f} x {row[1]:+.3f} y {row[2]:+.3f}")

    left, pen = panel(image, "input; red: the output")
    draw_frame(pen, theta, image.shape, ("(a, d)", "(b, e)", "(c, f)"))
    right, pen = panel(output, "output")
    draw_frame(pen, np.eye(2, 3), output.shape, ("", "", ""))

    picture = Image.new("RGB", (left.width + right.width + GAP * FINE, left.height), "white")
    picture.paste(left, (0, 0))
    picture.paste(right, (left.width + GAP * FINE, 0))
    save(picture.reduce(FINE), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
