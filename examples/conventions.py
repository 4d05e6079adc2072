"""Draws the conventions of docs/conventions.md: the positions of pixels, and the directions of maps.

jaxtex computes every position and every small image of the picture. The program prints the centers of four pixels in
each convention, and whether reads at these positions return the pixels as they are stored.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

import jaxtex as jt
from jaxtex import warp as jw

FINE = 4  # the picture is drawn this many times as large, then reduced by half
INK, GRAY, PALE, RED, BLUE = "#202020", "#9a9a9a", "#e9edf2", "#c8102e", "#1f5fbf"
LETTER = np.array(
    [[c == "#" for c in row] for row in (".......", ".####..", ".#.....", ".###...", ".#.....", ".#.....", ".......")]
)
IMAGE = jnp.asarray(LETTER, jnp.float32)[..., None]
Place = tuple[float, float]


class Sheet:
    """A white sheet to draw on, in units of its final pixels."""

    def __init__(self, width: int, height: int):
        self.image = Image.new("RGB", (width * FINE, height * FINE), "white")
        self.pen = ImageDraw.Draw(self.image)

    def text(self, at: Place, text: str, color: str = INK, anchor: str = "mm", size: int = 15):
        self.pen.text((at[0] * FINE, at[1] * FINE), text, color, anchor=anchor, font_size=size * FINE)

    def line(self, points: Sequence[Place], color: str = INK, width: float = 1):
        self.pen.line([(x * FINE, y * FINE) for x, y in points], color, round(width * FINE), "curve")

    def box(self, at: Place, width: float, height: float, fill: str | None = None, outline: str | None = None):
        (x, y), right, down = at, at[0] + width, at[1] + height
        self.pen.rectangle([c * FINE for c in (x, y, right, down)], fill, outline, FINE)

    def dot(self, at: Place, color: str = RED, radius: float = 3.5):
        self.pen.circle((at[0] * FINE, at[1] * FINE), radius * FINE, color)

    def arrow(self, points: Sequence[Place], color: str = INK, width: float = 1.5):
        """A line with a head at its end."""
        self.line(points, color, width)
        end, before = np.array(points[-1]), np.array(points[-2])
        ahead = (end - before) / np.linalg.norm(end - before)
        aside = np.array([-ahead[1], ahead[0]])
        wings = [end + 2 * ahead, end - 8 * ahead + 4.5 * aside, end - 8 * ahead - 4.5 * aside]
        self.pen.polygon([tuple(w * FINE) for w in wings], color)

    def cells(self, at: Place, values: np.ndarray, cell: float, dark: str = BLUE):
        """An image as squares, from pale, 0, to dark, 1."""
        pale, full = (np.array(Image.new("RGB", (1, 1), c).getpixel((0, 0))) for c in (PALE, dark))
        for (row, column), value in np.ndenumerate(np.asarray(values)):
            color = "#" + "".join(f"{round(c):02x}" for c in pale + (full - pale) * float(value))
            self.box((at[0] + column * cell, at[1] + row * cell), cell, cell, color, "white")
        self.box(at, values.shape[1] * cell, values.shape[0] * cell, None, GRAY)


def centers(size: int) -> dict[str, np.ndarray]:
    """The positions of the centers of a line of pixels, in each convention."""
    pixels = np.arange(size, dtype=np.float32) + 0.5
    theta = np.eye(2, 3, dtype=np.float32)
    grid = lambda align: np.asarray(jw.affine_grid(theta, (1, size), align_corners=align))[0, :, 0]
    return {
        "pixels": pixels,
        "0 to 1": pixels / size,
        "-1 to 1": grid(align=False),
        "-1 to 1, align_corners": grid(align=True),
        "index": pixels - 0.5,
    }


def reads(size: int) -> dict[str, jax.Array]:
    """Reads at these positions of a line of pixels 0, 1, 2 and so on, by the function of each convention."""
    ramp, places = np.arange(size, dtype=np.float32), centers(size)
    texture, middle = jt.texture1d(ramp[:, None]), np.zeros((1, 1), np.float32)
    sampled = lambda name, unit: jt.sample(texture, (places[name],), jt.Sampler(normalized_coords=unit))[:, 0]
    torch = lambda name, align: jw.grid_sample(
        ramp[None, None], (places[name][None], middle), padding_mode="border", align_corners=align
    )[0, 0]
    return {
        "pixels": sampled("pixels", unit=False),
        "0 to 1": sampled("0 to 1", unit=True),
        "-1 to 1": torch("-1 to 1", align=False),
        "-1 to 1, align_corners": torch("-1 to 1, align_corners", align=True),
        "index": jt.ndimage.map_coordinates(ramp, [places["index"]], order=1, mode="nearest"),
    }


def image_of(matrix: jax.Array, x: float, y: float) -> Place:
    """A point times an affine matrix."""
    moved = np.asarray(matrix) @ np.array([x, y, 1])
    return float(moved[0]), float(moved[1])


def draw_points(sheet: Sheet, left: float, top: float):
    """A small image with its axes, corners and centers."""
    cell, (width, height) = 42, (4, 3)
    at = lambda x, y: (left + x * cell, top + y * cell)
    sheet.cells(at(0, 0), np.zeros((height, width)), cell)
    sheet.box(at(2, 1), cell, cell, "#cfe0f7", GRAY)
    for y, x in np.ndindex(height, width):
        sheet.dot(at(x + 0.5, y + 0.5), RED if (x, y) == (2, 1) else GRAY)
    sheet.arrow([at(0, 0), at(4.7, 0)])
    sheet.arrow([at(0, 0), at(0, 3.5)])
    sheet.text(at(4.85, 0), "x")
    sheet.text(at(0, 3.72), "y")
    for x, y, anchor in ((0, 0, "rb"), (4, 3, "lt")):
        sheet.dot(at(x, y), INK)
        corner = at(x, y)
        sheet.text((corner[0] + (-5 if x == 0 else 5), corner[1] + (-3 if y == 0 else 3)), f"({x}, {y})", INK, anchor)
    sheet.line([at(2.5, 1.5), at(2.5, 3.4)], RED)
    sheet.text(at(2.2, 3.65), "image[1, 2] is at", RED)
    sheet.text(at(2.2, 4.1), "x = 2.5, y = 1.5", RED)


def draw_rulers(sheet: Sheet, left: float, top: float):
    """Four pixels along x, and the numbers of their edges and centers in each convention."""
    size, cell = 4, 76
    sheet.cells((left, top), np.zeros((1, size)), cell)
    found = centers(size)
    for column in range(size):
        sheet.dot((left + (column + 0.5) * cell, top + cell / 2))
    for row, (name, places) in enumerate(found.items()):
        y, half = top + cell + 20 + row * 30, (places[1] - places[0]) / 2
        sheet.text((left - 30, y), name, INK, "rm")
        for column, place in enumerate(places):
            sheet.text((left + (column + 0.5) * cell, y), f"{place:.3g}", RED)
        for column in (0, 2, 4):
            edge = places[0] - half + 2 * half * column
            sheet.text((left + column * cell, y), f"{edge + 0.0:.3g}", "#707070", size=14)


def draw_align_corners(sheet: Sheet, left: float, top: float):
    """The positions of the centers of seven pixels in an image of four, if theta is the identity."""
    size, wide, cell = 4, 7, 72
    for row, align in enumerate((False, True)):
        matrix = jw.matrix_from_torch(jnp.eye(2, 3), (1, size), (1, wide), align_corners=align)
        x, y = left, top + row * 106
        sheet.text((x, y - 14), f"align_corners={align}", INK, "lm")
        sheet.cells((x, y), np.zeros((1, size)), cell)
        span = (0.5, size - 0.5) if align else (0.0, float(size))
        for end, word in zip(span, ("-1", "1")):
            sheet.line([(x + end * cell, y), (x + end * cell, y + 26)], BLUE, 2)
            sheet.text(
                (x + end * cell + (6 if word == "-1" else -6), y + 12), word, BLUE, "lm" if word == "-1" else "rm"
            )
        for column in range(wide):
            place = image_of(matrix, column + 0.5, 0.5)[0]
            sheet.dot((x + place * cell, y + cell / 2))
            if column in (0, 1, wide - 1):
                sheet.text((x + place * cell, y + cell / 2 + 17), f"{place:.3g}", RED, size=14)


def draw_theta(sheet: Sheet, left: float, top: float):
    """The part of an image that a theta reads."""
    cell = 20
    theta = jnp.array([[0.5, 0.0, -0.25], [0.0, 0.5, -0.25]])
    matrix = jw.matrix_from_torch(theta, LETTER.shape, LETTER.shape)
    side = cell * len(LETTER)
    sheet.cells((left, top), LETTER, cell)
    sheet.cells((left + side + 116, top), jw.spatial_transform(IMAGE, theta, filter_mode="point")[..., 0], cell)
    frame = [image_of(matrix, *corner) for corner in ((0, 0), (7, 0), (7, 7), (0, 7), (0, 0))]
    sheet.line([(left + x * cell, top + y * cell) for x, y in frame], RED, 2.5)
    for start in (left, left + side + 116):
        for value in (-1, 0, 1):
            sheet.text((start + (value + 1) / 2 * side, top - 11), f"{value}", "#707070", size=14)
            sheet.text((start - 11, top + (value + 1) / 2 * side), f"{value}", "#707070", size=14)
    outer = left + side + 116
    sheet.arrow([(outer - 22, top + side * 0.75), (left + side + 8, top + side * 0.75)], RED)
    sheet.text((left + side + 50, top + side * 0.75 - 16), "theta", RED)
    sheet.text((left + side / 2, top + side + 16), "input")
    sheet.text((outer + side / 2, top + side + 16), "output")
    sheet.text((left, top + side + 40), "theta = [[0.5, 0, -0.25], [0, 0.5, -0.25]]: output to input", INK, "lm")


def draw_pair(
    sheet: Sheet,
    at: Place,
    images: Sequence[np.ndarray],
    ends: Sequence[Place],
    words: Sequence[str],
    names: Sequence[str],
):
    """Two images side by side, and an arrow from a point of the first to one of the second."""
    (left, top), cell, gap = at, 14, 54
    side = cell * len(LETTER)
    starts = left, left + side + gap
    for start, image, name in zip(starts, images, names):
        sheet.cells((start, top), np.asarray(image), cell)
        sheet.text((start + side / 2, top + side + 16), name)
    places = [(start + x * cell, top + y * cell) for start, (x, y) in zip(starts, ends)]
    for place in places:
        sheet.dot(place)
    start, end = map(np.array, places)
    sheet.arrow([places[0], tuple(end - 7 * (end - start) / np.linalg.norm(end - start))], RED)
    for k, word in enumerate(words):
        sheet.text((left, top + side + 40 + 21 * k), word, INK, "lm")


def draw_matrix(sheet: Sheet, left: float, top: float):
    """An affine matrix moves a point of the input to a point of the output."""
    matrix = jnp.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
    moved = jw.warp_affine(IMAGE, matrix, filter_mode="point")[..., 0]
    ends = (1.5, 1.5), image_of(matrix, 1.5, 1.5)
    words = "matrix = [[1, 0, 2], [0, 1, 1]]:", "input to output; output to", "input with inverse_map=True"
    draw_pair(sheet, (left, top), (LETTER, moved), ends, words, ("input", "output"))


def draw_flow(sheet: Sheet, left: float, top: float):
    """A flow leads from a pixel of the first image to its place in the second."""
    flow = jnp.full((7, 7), 2.0), jnp.full((7, 7), 1.0)
    second = jw.forward_warp(IMAGE, flow)
    words = "second = forward_warp(first, flow)", "first = warp_flow(second, flow)"
    draw_pair(sheet, (left, top), (LETTER, second[..., 0]), ((1.5, 1.5), (3.5, 2.5)), words, ("first", "second"))


def draw_rotation(sheet: Sheet, left: float, top: float):
    """A positive angle turns an image counter-clockwise, as seen."""
    cell, turned = 14, jw.rotate(IMAGE, angle=jnp.pi / 2, filter_mode="point")[..., 0]
    side = cell * len(LETTER)
    sheet.cells((left, top), turned, cell)
    angles = np.radians(np.linspace(-50, 40, 30))
    middle, radius = (left + side / 2, top + side / 2), 0.36 * side
    sheet.arrow([(middle[0] + radius * np.cos(a), middle[1] - radius * np.sin(a)) for a in angles], RED)
    for row, words in enumerate(("rotate(image,", "angle=pi / 2)")):
        sheet.text((left + side / 2, top + side + 16 + 21 * row), words)


def picture() -> Image.Image:
    """All drawings on one sheet."""
    sheet = Sheet(580, 1136)
    headings = (
        ((20, 24), "Points of an image"),
        ((276, 24), "Seven pixels read from four"),
        ((20, 318), "Four pixels in five units: edges and centers"),
        ((20, 634), "theta: which part is read"),
        ((468, 634), "An angle"),
        ((20, 906), "A matrix"),
        ((316, 906), "A flow"),
    )
    for at, text in headings:
        sheet.text(at, text, INK, "lm", 18)
    draw_points(sheet, 56, 76)
    draw_align_corners(sheet, 276, 76)
    draw_rulers(sheet, 254, 346)
    draw_theta(sheet, 44, 690)
    draw_rotation(sheet, 468, 690)
    draw_matrix(sheet, 20, 936)
    draw_flow(sheet, 316, 936)
    return sheet.image.reduce(2)


def checks() -> dict[str, bool]:
    """The statements of the page, and whether they hold."""
    right = jnp.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    flow, back = (jnp.ones((7, 7)), 0.0), jnp.array([[1.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    same = lambda a, b: bool(np.abs(np.asarray(a) - np.asarray(b)).max() < 1e-5)
    moved = np.pad(IMAGE, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    return {
        "a matrix maps input to output": same(jw.warp_affine(IMAGE, right), moved),
        "with inverse_map output to input": same(jw.warp_affine(IMAGE, back, inverse_map=True), moved),
        "forward_warp follows a flow": same(jw.forward_warp(IMAGE, flow), moved),
        "warp_flow undoes it": same(jw.warp_flow(moved, flow), IMAGE),
        "90 degrees are a quarter turn counter-clockwise": same(jw.rotate(IMAGE, angle=jnp.pi / 2), np.rot90(IMAGE)),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the conventions of coordinates, matrices, angles and flows.")
    parser.add_argument("--out", type=Path, default=Path("conventions.png"))
    args = parser.parse_args(argv)

    found = reads(4)
    for name, places in centers(4).items():
        stored = bool(np.abs(np.asarray(found[name]) - np.arange(4)).max() < 1e-5)
        print(f"{name:22}", *(f"{place:7.4f}" for place in places), f"  read as stored: {stored}")
    for claim, holds in checks().items():
        print(f"{claim}: {holds}")
    picture().quantize(64, dither=Image.Dither.NONE).save(args.out, optimize=True)
    print(f"wrote {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
