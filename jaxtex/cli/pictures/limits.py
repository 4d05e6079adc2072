"""How large an image may be, before anything is allocated for it."""

# pyright: strict

from ..errors import UserError

Size = tuple[int, int]

# The most pixels of a side: as the formats store it; for PNG as libpng reads it by default.
MAX_SIDES = {"PNG": 1_000_000, "JPEG": 65535, "TIFF": 2**32 - 1, "WebP": 16383}


def check_pixels(size: Size, max_pixels: int) -> None:
    """Checks the number of pixels of an image.

    Args:
        size: width and height.
        max_pixels: the most that the user allows.

    Raises:
        UserError: if it has more.
    """
    width, height = size
    if width * height > max_pixels:
        raise UserError(
            f"{width}x{height} are {width * height / 1e6:.6g} million pixels, more than the limit of "
            f"{max_pixels / 1e6:.6g} million; --max-pixels sets another limit"
        )


def check_sides(size: Size, file_format: str) -> None:
    """Checks that a format can store an image so wide and so high.

    Raises:
        UserError: if it cannot.
    """
    limit = MAX_SIDES[file_format]
    if max(size) > limit:
        width, height = size
        raise UserError(f"{width}x{height} pixels are too many for {file_format}, which stores {limit} a side")
