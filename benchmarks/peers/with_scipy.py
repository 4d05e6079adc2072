"""`jax.scipy.ndimage.map_coordinates`, channel by channel under `vmap`, with JAX's own derivatives."""

import jax
from jax.scipy.ndimage import map_coordinates as ndimage

from ..inputs import inputs
from ..works import Work
from .protocol import Run
from .with_jaxtex import compiled, differentiated

# SciPy's reflect repeats the edge texel, as mirror does here.
MODES = {"clamp": "nearest", "wrap": "wrap", "mirror": "reflect", "border": "constant"}
# Its gradients keep an array for each tap.
MOST_TEXELS = 4096**2 * 4


def map_coordinates(work: Work) -> Run | None:
    texels = work.side**work.dimensions * work.channels
    plain = work == work.plain and work.dtype == "float32" and not work.mips and not work.batch
    if not plain or work.what == "build" or work.kind == "cubemap" or texels > MOST_TEXELS:
        return None
    data = inputs(work)

    def read(texels, *coords):
        at = [c * work.side - 0.5 for c in reversed(coords)]
        return jax.vmap(lambda t: ndimage(t, at, order=1, mode=MODES[work.address_mode]), -1, -1)(texels)

    args = (data.texture.texels, *data.coords)
    if work.what == "read":
        return compiled(read, args)
    return compiled(differentiated(work.what, read), (data.cotangent, *args))
