"""The values that options take: text to numbers, points, sizes and colors."""

import argparse
import math
import re
from pathlib import Path

from .process import UserError

LEAST_MEMORY = 2**30
Point = tuple[float, float]
COLORS = {"black": 0.0, "gray": 128.0, "white": 255.0}
COEFFICIENTS = ("k1", "k2", "p1", "p2", "k3")
FISHEYE_COEFFICIENTS = ("k1", "k2", "k3", "k4")


def matrix_words(words: list[str]) -> list[str]:
    """The words of a command line, in which the elements of `--matrix` may stand in one word, between commas."""
    found: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name == "--matrix" and equals:
            found += [name, *value.split(",")]
        else:
            found += word.split(",") if found[-1:] == ["--matrix"] else [word]
    return found


def matrix_length(words: list[str]) -> int:
    """How many of the words behind `--matrix` are its elements: six, or nine if so many are numbers."""
    if "--matrix" not in words:
        return 6
    behind = words[words.index("--matrix") + 1 :][:9]
    count = next((k for k, word in enumerate(behind) if not is_number(word)), len(behind))
    if count < 6:
        raise UserError(f"--matrix takes six numbers of an affine matrix, or nine of a homography, but got {count}")
    return 9 if count == 9 else 6


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        number(text)
    except argparse.ArgumentTypeError:
        return False
    return True


def protect_negative_number(argument: str) -> str:
    """Puts a space before a value that begins with a negative number, since argparse would take it for an option."""
    return f" {argument}" if re.fullmatch(r"-[0-9.][0-9.eE+,:-]*", argument) else argument


def number(text: str) -> float:
    """A number that is neither infinite nor NaN."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        share = text.strip().removesuffix("%")
        remedy = f"; write {float(share) / 100:g}" if share != text.strip() and is_number(share) else ""
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not a number{remedy}")
    return value


def positive_number(text: str) -> float:
    """A number above 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text.strip()} is not above 0")
    return value


def number_list(text: str) -> tuple[float, ...]:
    """Numbers, separated by commas."""
    return tuple(number(value) for value in text.split(","))


def point_pair(text: str) -> tuple[Point, Point]:
    """A point of the input and the point of the output to which it maps, as X,Y:X,Y."""
    match [number_list(point) for point in text.split(":")]:
        case [(x, y), (u, v)]:
            return (x, y), (u, v)
        case _:
            raise argparse.ArgumentTypeError(f"{text.strip()!r} is not X,Y:X,Y, a point and where it maps to")


def coefficient_list(text: str) -> tuple[float, ...]:
    """One to five coefficients of a lens."""
    values = number_list(text)
    if len(values) > len(COEFFICIENTS):
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not 1 to 5 numbers {','.join(COEFFICIENTS)}")
    return values


def camera(text: str) -> tuple[float, float, float, float]:
    """Two focal lengths above 0, and the principal point."""
    match number_list(text):
        case (fx, fy, cx, cy) if fx > 0 and fy > 0:
            return fx, fy, cx, cy
        case _:
            expected = "FX,FY,CX,CY, four numbers, the first two above 0"
            raise argparse.ArgumentTypeError(f"{text.strip()!r} is not {expected}")


def size(text: str) -> tuple[int, int]:
    """Width and height, as WxH."""
    match = re.fullmatch(r"0*([1-9][0-9]{0,8})x0*([1-9][0-9]{0,8})", text)
    if not match:
        example = f"{text}x{text}" if text.isdecimal() else "640x480"
        raise argparse.ArgumentTypeError(f"{text!r} is not WxH, two whole numbers above 0 such as {example}")
    return int(match[1]), int(match[2])


def color(text: str) -> tuple[float, ...]:
    """One to four values from 0 to 255, as numbers separated by commas or as hexadecimal digits."""
    if text in COLORS:
        return (COLORS[text],)
    if re.fullmatch(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{8})", text):
        return tuple(float(byte) for byte in bytes.fromhex(text[1:]))
    refusal = f"{text!r} is not 1 to 4 values from 0 to 255, #rrggbb or one of {', '.join(COLORS)}"
    try:
        values = number_list(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(refusal) from None
    if len(values) > 4 or not all(0 <= value <= 255 for value in values):
        raise argparse.ArgumentTypeError(refusal)
    return values


def path(text: str) -> Path:
    """A path. An empty one, as of a variable of the shell that is not set, is none, and not the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is empty")
    return Path(text)


def device(text: str) -> tuple[str, int]:
    """The name of a platform and the number of a device, as NAME or NAME:N."""
    match = re.fullmatch(r"([a-z]+)(?::([0-9]{1,9}))?", text.lower())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:N, such as gpu:1")
    return match[1], int(match[2] or 0)


def whole_number(text: str) -> int:
    """A whole number above 0, which may be written as 2e9."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value < 2**63 or value % 1:
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not a whole number above 0")
    return int(value)


def memory(text: str) -> int:
    """A number of bytes from 1G on, as 4G or 1500M."""
    match = re.fullmatch(r"([0-9]{1,6})([MGT])B?", text.upper())
    found = int(match[1]) * 2 ** {"M": 20, "G": 30, "T": 40}[match[2]] if match else 0
    if found < LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size from 1G on, such as 4G or 1500M")
    return found


def quality(text: str) -> int:
    """A whole number from 1 to 100."""
    if not re.fullmatch(r"0*([1-9][0-9]?|100)", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 100")
    return int(text)
