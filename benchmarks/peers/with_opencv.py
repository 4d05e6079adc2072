"""OpenCV's `remap`, on a CPU."""

import functools

import jax.numpy as jnp
import numpy as np

from ..inputs import inputs
from ..works import Work
from .protocol import Run, on_gpu, optional

MODES = {"clamp": "REPLICATE", "wrap": "WRAP", "mirror": "REFLECT", "border": "CONSTANT"}


def opencv(work: Work) -> Run | None:
    plain = work == work.plain and work.dtype == "float32" and not work.mips
    if not plain or work.what != "read" or work.kind != "2d" or work.channels > 4 or on_gpu():
        return None
    if (cv2 := optional("cv2")) is None:
        return None
    data = inputs(work)
    at = (np.asarray(c * work.side - 0.5, np.float32) for c in data.coords)
    border = getattr(cv2, f"BORDER_{MODES[work.address_mode]}")
    read = functools.partial(cv2.remap, np.asarray(data.texture.texels), *at, cv2.INTER_LINEAR, borderMode=border)
    shape = (work.samples, work.samples, work.channels)
    return Run(read, wait=lambda out: out, arrays=lambda out: jnp.asarray(out.reshape(shape)))
