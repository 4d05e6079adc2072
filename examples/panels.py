"""Draws the pictures of the examples: titled panels in rows with equal gutters, in one font, and curves with axes."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageColor, ImageDraw, ImageFont

import jaxtex as jt

DATA = Path(__file__).parent / "data"
MARGIN, GAP = 10, 14  # pixels around the sheet and between panels
# A sheet is at most as wide as so many sizes of its type, so that it can be read on a phone: 10 of 390 pixels.
WIDEST, SIZE, SMALLEST = 37, 17, 11
INK, FAINT, RULE, ACCENT = "#1a1a1a", "#5f5f5f", "#dddddd", "#c5221f"
COLORS = (ACCENT, "#1f4e99", "#2e7d32", "#b26a00")
AMOUNTS = ("#0b2545", "#134e6f", "#2a9d8f", "#e9c46a", "#f4a261", "#fff4e0")  # from nothing to the most
FINE = 3  # curves are drawn this many times as large, then reduced


class Panel(NamedTuple):
    """An image, or an array (H, W), (H, W, 1) or (H, W, 3) of bytes or of values from 0 to 1, with words around it."""

    title: str
    image: Image.Image | ArrayLike
    note: str = ""


def to_bytes(image: ArrayLike) -> np.ndarray:
    """Values from 0 to 1 as bytes."""
    return np.uint8(np.clip(np.asarray(image, np.float32), 0, 1) * 255 + 0.5)


def to_image(image: Image.Image | ArrayLike) -> Image.Image:
    """A panel's image in red, green and blue."""
    if isinstance(image, Image.Image):
        return image.convert("RGB")
    pixels = np.asarray(image)
    pixels = pixels if pixels.dtype == np.uint8 else to_bytes(pixels)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    return Image.fromarray(np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3))))


def magnified(image: Image.Image | ArrayLike, times: int) -> Image.Image:
    """An image with each pixel drawn as a square of `times` by `times` pixels."""
    image = to_image(image)
    return image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)


def difference(image: ArrayLike, other: ArrayLike, gain: float = 1.0) -> np.ndarray:
    """How far an image is from another, as colors around medium gray."""
    return 0.5 + gain * (np.asarray(image, np.float32) - np.asarray(other, np.float32))


def colored(amounts: ArrayLike) -> jax.Array:
    """Amounts from 0 to 1 as colors of bytes, looked up in a 1D texture: (..., 3)."""
    texture = jt.texture1d(np.float32([ImageColor.getrgb(color) for color in AMOUNTS]))
    return jnp.uint8(jt.sample(texture, (jnp.asarray(amounts),)))


def outlined(
    image: Image.Image | ArrayLike, points: ArrayLike, color: str = ACCENT, width: int = 2, closed: bool = True
) -> Image.Image:
    """An image with a line through points (N, 2), x and y in pixels; or with a frame around a part, from and to."""
    image, places = to_image(image).copy(), np.asarray(points, np.float64)
    pen, corners = ImageDraw.Draw(image), [tuple(place) for place in places.tolist()]
    if closed and len(places) == 2:
        pen.rectangle((*(places[0] - width), *(places[1] + width - 1)), None, color, width)
    else:
        pen.line([*corners, *(corners[:2] if closed else ())], color, width, "curve")
    return image


def font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def fitting(words: Sequence[tuple[str, int]], size: float) -> float:
    """The largest size of the font, up to `size`, at which each text fits into its width."""
    ratios = [width / max(font(size).getlength(text), 1) for text, width in words]
    return max(SMALLEST, math.floor(size * min([1.0, *ratios])))


def lines(width: int) -> tuple[float, int, int]:
    """The size of the type of a sheet, and the pixels for the line above and the line below a panel."""
    size = max(SIZE, width / WIDEST)
    return size, round(1.5 * size), round(1.3 * size)


def sheet(rows: Sequence[Sequence[Panel]]) -> Image.Image:
    """Rows of panels, each below its title and above its note."""
    images = [[to_image(panel.image) for panel in row] for row in rows]
    columns = max(map(len, rows))
    widths = [max(line[k].width for line in images if k < len(line)) for k in range(columns)]
    width = sum(widths) + GAP * (columns - 1) + 2 * MARGIN
    size, title, note = lines(width)
    each = [(p, i.width) for row, line in zip(rows, images) for p, i in zip(row, line)]
    titles = fitting([(panel.title, wide) for panel, wide in each], size)
    notes = fitting([(panel.note, wide) for panel, wide in each], 0.9 * size)
    heights = [max(image.height for image in line) for line in images]
    above = [title if any(panel.title for panel in row) else 0 for row in rows]
    below = [note if any(panel.note for panel in row) else 0 for row in rows]
    height = 2 * MARGIN + sum(above) + sum(heights) + sum(below) + GAP * (len(rows) - 1)
    picture = Image.new("RGB", (width, height), "white")
    pen, top = ImageDraw.Draw(picture), MARGIN
    for k, (row, line) in enumerate(zip(rows, images)):
        at, bottom = MARGIN, top + above[k] + heights[k]
        for panel, image, across in zip(row, line, widths):
            picture.paste(image, (at, top + above[k]))
            pen.text((at, top + title / 2 - 2), panel.title, INK, font(titles), anchor="lm")
            pen.text((at, bottom + note / 2 + 1), panel.note, FAINT, font(notes), anchor="lm")
            at += across + GAP
        top = bottom + below[k] + GAP
    return picture


def steps(low: float, high: float, count: int = 4) -> list[float]:
    """About `count` round numbers from `low` to `high`."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = math.ceil(low / step - 1e-9)
    return [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]


def plot(
    size: tuple[int, int],
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    across: str,
    up: str,
    logarithmic: bool = False,
    limits: tuple[tuple[float, float], tuple[float, float]] | None = None,
    columns: int = 3,
    corner: str = "rb",
) -> Image.Image:
    """Curves, by name, over axes with round numbers. `limits` are those of both axes, else they follow the curves.

    The type is that of a sheet on which so many `columns` of this size stand side by side. The names stand in a
    `corner`: "rb", right at the bottom, or "la", left at the top.
    """
    xs = {name: np.asarray(x, np.float64) for name, (x, _) in curves.items()}
    ys = {name: np.log10(y) if logarithmic else np.asarray(y, np.float64) for name, (_, y) in curves.items()}
    span = lambda values: (min(v.min() for v in values.values()), max(v.max() for v in values.values()))
    (left, right), (low, high) = limits or (span(xs), span(ys))
    if logarithmic and not limits:
        low, high = math.floor(low), math.ceil(high)
    width, height = size
    letter = 0.9 * lines(columns * width)[0]
    box = 3.9 * letter, letter, width - letter, height - 3 * letter  # of the axes, in pixels
    picture = Image.new("RGB", (width * FINE, height * FINE), "white")
    pen, small = ImageDraw.Draw(picture), font(letter * FINE)
    x_of = lambda x: (box[0] + (x - left) / (right - left) * (box[2] - box[0])) * FINE
    y_of = lambda y: (box[3] - (y - low) / (high - low) * (box[3] - box[1])) * FINE
    for y in range(low, high + 1) if logarithmic and not limits else steps(low, high):
        pen.line((box[0] * FINE, y_of(y), box[2] * FINE, y_of(y)), RULE, FINE)
        text = f"1e{round(y)}" if logarithmic else f"{y:g}"
        pen.text(((box[0] - 6) * FINE, y_of(y)), text, FAINT, small, anchor="rm")
    for x in steps(left, right):
        pen.line((x_of(x), box[3] * FINE, x_of(x), (box[3] + 4) * FINE), FAINT, FINE)
        pen.text((x_of(x), (box[3] + 6) * FINE), f"{x:g}", FAINT, small, anchor="mt")
    pen.line(
        [(box[0] * FINE, box[1] * FINE), (box[0] * FINE, box[3] * FINE), (box[2] * FINE, box[3] * FINE)], INK, FINE
    )
    for k, (name, color) in enumerate(zip(curves, COLORS)):
        pen.line([*zip(map(x_of, xs[name]), map(y_of, ys[name]))], color, 2 * FINE, joint="curve")
        if len(curves) > 1:
            x = box[2] if corner[0] == "r" else box[0] + 8
            y = box[3] - 6 - 1.3 * letter * k if corner[1] == "b" else box[1] + 1.3 * letter * k
            pen.text((x * FINE, y * FINE), name, color, small, anchor=corner)
    pen.text(((box[0] + box[2]) / 2 * FINE, (height - 0.3 * letter) * FINE), across, INK, small, anchor="mb")
    side = Image.new("L", (height * FINE, round(1.4 * letter * FINE)), 0)
    middle = (height - (box[1] + box[3]) / 2) * FINE, side.height / 2
    ImageDraw.Draw(side).text(middle, up, 255, small, anchor="mm")
    side = side.rotate(90, expand=True)
    picture.paste(Image.new("RGB", side.size, INK), (0, 0), side)
    return picture.reduce(FINE)


def save(picture: Image.Image, path: Path, quality: int = 85) -> None:
    """Writes a picture. The name's ending chooses the format; `quality` is that of a JPEG."""
    gray = picture.convert("L")
    picture = gray if gray.convert(picture.mode).tobytes() == picture.tobytes() else picture
    picture.save(path, quality=quality, optimize=True)
    print(f"wrote {path}")


def animate(frames: Sequence[Image.Image], path: Path, milliseconds: int) -> None:
    """Writes frames as an animation that ends at its last frame. The name's ending chooses the format."""
    options = {"quality": 70, "method": 6, "loop": 1} if path.suffix == ".webp" else {"optimize": True}
    frames[0].save(path, save_all=True, append_images=list(frames[1:]), duration=milliseconds, **options)
    print(f"wrote {path}, {len(frames)} frames")
