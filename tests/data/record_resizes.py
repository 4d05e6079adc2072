"""Records how OpenCV and Pillow shrink an image: `python tests/data/record_resizes.py`, with both installed.

Recorded with opencv-python-headless 5.0.0 and Pillow 13.0.0.
"""

import io
import json
import lzma
from pathlib import Path

import cv2
import numpy as np
import PIL
from PIL import Image

PATH = Path(__file__).with_name("resizes.npz.xz")
# Height and width: of the image, and of the results.
SIZES, OUTPUTS = (75, 98), ((20, 26), (61, 30), (9, 90))
FILTERS = {"linear": "BILINEAR", "cubic": "BICUBIC", "lanczos3": "LANCZOS"}


def main():
    image = np.random.default_rng(0).normal(size=SIZES).astype(np.float32)
    arrays = {"image": image}
    for height, width in OUTPUTS:
        size = (width, height)
        arrays[f"opencv/area/{height}x{width}"] = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        for name, word in FILTERS.items():
            small = Image.fromarray(image).resize(size, getattr(Image.Resampling, word))
            arrays[f"pillow/{name}/{height}x{width}"] = np.asarray(small)
    versions = {"opencv": cv2.__version__, "pillow": PIL.__version__}
    arrays["versions"] = np.frombuffer(json.dumps(versions).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    PATH.write_bytes(lzma.compress(file.getvalue(), preset=9))
    print(f"{len(arrays)} arrays, {PATH.stat().st_size} bytes, {versions}")


if __name__ == "__main__":
    main()
