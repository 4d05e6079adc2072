"""cuCIM's `warp` of images and volumes of one channel, on a GPU, through CuPy."""

import functools

import numpy as np

from ..inputs import inputs
from ..works import Work
from .protocol import Run, as_jax, on_gpu, optional
from .with_cupy import wait

MODES = {"clamp": "edge", "wrap": "wrap", "mirror": "symmetric", "border": "constant"}


def cucim(work: Work) -> Run | None:
    plain = work == work.plain and work.dtype == "float32" and not work.mips
    if not plain or work.what != "read" or work.channels != 1 or work.kind == "cubemap" or not on_gpu():
        return None
    if (transform := optional("cucim.skimage.transform")) is None:
        return None
    cupy, data = optional("cupy"), inputs(work)
    image, *coords = (cupy.asarray(np.asarray(a)) for a in (data.texture.texels[..., 0], *data.coords))
    at = cupy.stack([c * work.side - 0.5 for c in reversed(coords)])
    how = {"order": 1, "mode": MODES[work.address_mode], "clip": False, "preserve_range": True}
    return Run(functools.partial(transform.warp, image, at, **how), wait, lambda out: as_jax(out)[..., None])
