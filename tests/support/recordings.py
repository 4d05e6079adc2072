"""What texture units and other libraries returned, as `tests/data` holds it."""

import functools
import io
import lzma
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "data"


@functools.cache
def arrays(name):
    with np.load(io.BytesIO(lzma.decompress((FOLDER / f"{name}.npz.xz").read_bytes()))) as file:
        return dict(file)
