"""Records how scikit-image projects and reconstructs: `python tests/data/record_backprojections.py`, with it installed.

Recorded with scikit-image 0.26.0.
"""

import io
import json
import lzma
from pathlib import Path

import numpy as np
import skimage
from skimage.transform import iradon, radon

PATH = Path(__file__).with_name("backprojections.npz.xz")
# An odd size: scikit-image turns images about the center of pixel SIZE // 2.
SIZE, VIEWS = 33, 24
FILTERS = ("ramp", "shepp-logan", "cosine", "hamming", "hann", None)


def blobs():
    """A smooth image without symmetry, zero outside the inscribed circle."""
    y, x = np.mgrid[:SIZE, :SIZE] - SIZE // 2
    places = ((-4, 3, 3.0, 1.0), (5, -2, 2.0, 0.6), (2, 6, 2.5, -0.4))
    image = sum(v * np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * s * s)) for a, b, s, v in places)
    return image * (np.hypot(x, y) <= SIZE // 2)


def main():
    image, degrees = blobs(), np.arange(VIEWS) * 180 / VIEWS
    sinogram = radon(image, degrees, circle=True)
    arrays = {"image": image, "degrees": degrees, "radon": sinogram}
    for name in FILTERS:
        arrays[f"iradon/{name}"] = iradon(sinogram, degrees, filter_name=name, circle=True)
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    versions = {"scikit-image": skimage.__version__}
    arrays["versions"] = np.frombuffer(json.dumps(versions).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    PATH.write_bytes(lzma.compress(file.getvalue(), preset=9))
    print(f"{len(arrays)} arrays, {PATH.stat().st_size} bytes, {versions}")


if __name__ == "__main__":
    main()
