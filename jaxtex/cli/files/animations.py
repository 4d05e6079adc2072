"""Animations: the frames of GIF, WebP and APNG, as Pillow composes and writes them, and the colors of a GIF.

Sources: GIF89a specification, sections 17 to 26; XMP specification, part 3, section 1.1.2.
"""

from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ...warp.sized.mappings import Array
from .inputs import Animation

# The formats that store animations.
ANIMATED = ("GIF", "WebP", "PNG")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
GIF_UNIT = 10  # milliseconds
MOST_COLORS = 256  # of a frame of a GIF
OPAQUE_FROM = 128
EXTENSION, IMAGE, COMMENT, APPLICATION = 0x21, 0x2C, 0xFE, 0xFF
IMAGE_BYTES = 10  # of what is before the colors and the pixels of a frame
XMP_NAME, PROFILE_NAME = b"XMP DataXMP", b"ICCRGBG1012"
# Behind the packet, so that a reader that takes it for blocks with lengths finds their end.
XMP_END = bytes((1, *range(255, -1, -1), 0))


def may_move(head: bytes) -> bool:
    """Whether a file may be an animation, by its first bytes."""
    is_webp = head[8:12] == b"WEBP" and head[12:16] == b"VP8X" and bool(head[20] & 2)
    return head.startswith((b"GIF8", PNG_SIGNATURE)) or is_webp


def animation_of(image: Image.Image) -> Animation | None:
    """What Pillow says of an animation; `None` if the file has one picture."""
    if getattr(image, "n_frames", 1) == 1:
        return None
    loop = image.info.get("loop")
    if image.format == "GIF":  # which states how often it is repeated
        loop = 1 if loop is None else loop and loop + 1
    return Animation(loop or 0, bool(image.info.get("default_image")))


def has_alpha(image: Image.Image) -> bool:
    """Whether any composed frame of a GIF is transparent somewhere."""
    for number in range(getattr(image, "n_frames", 1)):
        image.seek(number)
        if image.has_transparency_data and image.convert("RGBA").getextrema()[3][0] != 255:  # pyright: ignore
            return True
    return False


def writing_options(
    animation: Animation, file_format: str, images: list[Image.Image], shown: list[float]
) -> dict[str, Any]:
    """What Pillow's `save` of the first image takes, so that the others follow.

    Args:
        shown: how long each image is shown, in milliseconds.
    """
    options: dict[str, Any] = {"save_all": True, "append_images": images[1:], "duration": shown}
    if file_format == "GIF":
        loop = {} if animation.plays == 1 else {"loop": max(animation.plays - 1, 0)}
        # A frame with transparency shows no frame below it.
        return options | loop | ({"disposal": 2} if "transparency" in images[0].info else {})
    if file_format == "PNG" and animation.has_poster:
        options |= {"default_image": True, "duration": shown[1:]}
    return options | {"loop": animation.plays}


# The colors of a GIF


class GifColors(NamedTuple):
    """A picture in colors that a GIF can store, RGB or RGBA, and notes on what was lost."""

    pixels: Array
    notes: tuple[str, ...]


def fit_colors(pixels: Array) -> GifColors:
    """A picture of 8 bits in at most 256 colors, one of which is transparent if there is alpha."""
    notes: tuple[str, ...] = ()
    colors = pixels[..., :-1] if pixels.shape[-1] in (2, 4) else pixels
    alpha = pixels[..., -1:] if pixels.shape[-1] in (2, 4) else None
    colors = np.ascontiguousarray(np.broadcast_to(colors, (*colors.shape[:2], 3)))
    if alpha is not None:
        if ((alpha > 0) & (alpha < 255)).any():
            notes += ("has pixels in part transparent, which GIF shows as opaque or clear",)
        alpha = np.where(alpha < OPAQUE_FROM, 0, 255).astype(np.uint8)
        colors = np.where(alpha > 0, colors, 0)
    most = MOST_COLORS - (alpha is not None)
    if len(np.unique(packed(colors))) > most:
        colors = np.asarray(Image.fromarray(colors).quantize(most, Image.Quantize.MEDIANCUT).convert("RGB"))
        notes += (f"is reduced to {MOST_COLORS} colors a frame, the most that GIF can store",)
        colors = colors if alpha is None else np.where(alpha > 0, colors, 0)
    return GifColors(colors if alpha is None else np.concatenate([colors, alpha], axis=-1), notes)


def indexed(pixels: Array, with_clear: bool) -> Image.Image:
    """A picture of few colors with a palette, whose first color is the transparent one if there is one.

    Args:
        with_clear: whether any frame has transparent pixels.
    """
    found, index = np.unique(packed(pixels[..., :3]), return_inverse=True)
    index = index.reshape(pixels.shape[:2]) + with_clear
    if pixels.shape[-1] == 4:
        index = np.where(pixels[..., 3] > 0, index, 0)
    image = Image.fromarray(index.astype(np.uint8), "P")
    palette = [0] * (3 * with_clear) + [int(color >> shift) & 255 for color in found for shift in (16, 8, 0)]
    image.putpalette((palette + [0] * 768)[:768])
    if with_clear:
        image.info["transparency"] = 0
    return image


def packed(colors: Array) -> Array:
    """Three channels as one number."""
    wide = colors.astype(np.uint32)
    return wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]


# What a GIF says of its picture: blocks that begin with a kind, and parts of at most 255 bytes


class GifTexts(NamedTuple):
    """What the extensions of a GIF hold."""

    comments: tuple[bytes, ...] = ()
    xmp: bytes | None = None
    profile: bytes | None = None


def table_end(data: bytes, flags_at: int, end: int) -> int:
    """Where a table of colors ends that may stand at `end`, by the flags of what is before it."""
    flags = data[flags_at]
    return end + (3 * 2 ** ((flags & 7) + 1) if flags & 128 else 0)


def read_gif(data: bytes) -> GifTexts:
    """The texts of a GIF, as far as it is whole."""
    comments: list[bytes] = []
    xmp, profile = None, None
    data += bytes(IMAGE_BYTES)  # so that what is cut off ends
    at = table_end(data, 10, 13)
    while at + IMAGE_BYTES < len(data) and data[at] in (EXTENSION, IMAGE):
        is_extension, kind = data[at] == EXTENSION, data[at + 1]
        start = at = at + 2 if is_extension else table_end(data, at + 9, at + IMAGE_BYTES) + 1
        parts: list[bytes] = []
        while at < len(data) and data[at]:
            parts.append(data[at + 1 : at + 1 + data[at]])
            at += 1 + data[at]
        if is_extension and kind == COMMENT:
            comments.append(b"".join(parts))
        elif is_extension and parts[:1] == [XMP_NAME]:
            xmp = data[start + 1 + len(XMP_NAME) : at].removesuffix(XMP_END[:-1])
        elif is_extension and parts[:1] == [PROFILE_NAME]:
            profile = b"".join(parts[1:])
        at += 1
    return GifTexts(tuple(comments), xmp, profile)


def add_to_gif(data: bytes, texts: GifTexts) -> bytes:
    """A GIF, as Pillow writes it, with texts behind its first table of colors."""
    blocks = [bytes((EXTENSION, COMMENT)) + in_parts(comment) for comment in texts.comments]
    blocks += [bytes((EXTENSION, APPLICATION, 11)) + XMP_NAME + texts.xmp + XMP_END] if texts.xmp else []
    if texts.profile:
        blocks.append(bytes((EXTENSION, APPLICATION, 11)) + PROFILE_NAME + in_parts(texts.profile))
    at = table_end(data, 10, 13)
    return b"".join((b"GIF89a", data[6:at], *blocks, data[at:]))


def in_parts(body: bytes) -> bytes:
    """Bytes in parts with their lengths, and an empty one at the end."""
    parts = (body[k : k + 255] for k in range(0, len(body), 255))
    return b"".join(bytes((len(part),)) + part for part in parts) + b"\0"
