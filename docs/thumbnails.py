"""Cuts the thumbnails of the gallery, docs/examples.md, out of the pictures: `python docs/thumbnails.py`."""

from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 320, 200
# The left and upper corner and the width of what is cut out; by default from the left, as large as possible.
CUTS: dict[str, tuple[int, int, int] | None] = {
    "address_modes": None,
    "antialiasing": None,
    "bilateral_filter": (391, 262, 254),
    "block_compression": (0, 0, 500),
    "chessboard": (0, 0, 898),
    "conventions": (0, 0, 1160),
    "deformational_flow": (0, 0, 656),
    "digits": (0, 0, 793),
    "environment_map": (0, 20, 640),
    "feature_grid": (0, 20, 780),
    "hardware_arithmetic": (0, 0, 624),
    "histogram_equalization": None,
    "homography": (0, 15, 898),
    "learned_texture": (0, 0, 816),
    "lens": (0, 0, 1283),
    "ndimage": (0, 0, 806),
    "optical_flow": (316, 0, 632),
    "particles": (0, 20, 540),
    "radiograph": (208, 235, 411),
    "reaction_diffusion": (272, 0, 460),
    "register": (0, 20, 640),
    "register_volumes": (543, 10, 460),
    "ridges": (0, 364, 579),
    "rotate": (0, 0, 936),
    "semi_lagrangian": (0, 0, 480),
    "spatial_transformer": (0, 0, 560),
    "textured_plane": (0, 0, 498),
    "theta": (60, 20, 500),
    "tomography": (270, 330, 480),
    "tracer": (0, 10, 470),
    "transfer_function": (518, 62, 240),
    "warp_gallery": (0, 250, 948),
    "z_order": (0, 15, 459),
    "zone_plate": (0, 15, 648),
}


def main() -> None:
    for name, cut in CUTS.items():
        source = next(path for path in sorted(IMAGES.glob(f"{name}.*")) if path.suffix != ".webp")
        with Image.open(source) as picture:
            width = min(picture.width, picture.height * WIDTH // HEIGHT)
            left, top, width = cut or (0, 0, width)
            box = left, top, left + width, top + width * HEIGHT // WIDTH
            thumbnail = picture.convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS, box)
        thumbnail.save(IMAGES / "thumbnails" / f"{name}.webp", quality=60, method=6)


if __name__ == "__main__":
    main()
