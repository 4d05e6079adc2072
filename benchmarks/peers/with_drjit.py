"""Dr.Jit's textures, on a GPU, computed in float as jaxtex does; with gradients in texels and coordinates."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..inputs import inputs
from ..works import Work
from .protocol import Run, holding_memory, on_gpu, optional

WRAP_MODES = {"clamp": "Clamp", "wrap": "Repeat", "mirror": "Mirror"}


def arrays_module() -> Any:
    """The arrays of the device, or None if Dr.Jit is not installed or JAX computes elsewhere."""
    return optional("drjit.cuda.ad") if on_gpu() else None


def drjit(work: Work) -> Run | None:
    plain = work.given == work.plain and work.dtype == "float32" and not work.mips and not work.batch
    if not plain or work.what == "build" or work.kind == "cubemap" or work.address_mode not in WRAP_MODES:
        return None
    if (ad := arrays_module()) is None:
        return None
    dr, data, d = optional("drjit"), inputs(work), work.dimensions
    floats = lambda array: [ad.Float(np.asarray(a).ravel()) for a in array]
    tensor = ad.TensorXf(np.asarray(data.texture.texels))
    coords = getattr(ad, f"Array{d}f")(*floats(data.coords))
    texture = getattr(ad, f"Texture{d}f")(
        tensor,
        use_accel=False,
        migrate=False,
        filter_mode=dr.FilterMode.Linear,
        wrap_mode=getattr(dr.WrapMode, WRAP_MODES[work.address_mode]),
    )
    cotangent = [] if data.cotangent is None else floats(np.moveaxis(np.asarray(data.cotangent), -1, 0))
    dr.eval(tensor, coords, cotangent)
    shape = (work.samples,) * d

    def wait(result: Any) -> Any:
        dr.sync_thread()
        return result

    def read() -> Any:
        out = texture.eval(coords)
        dr.eval(out)
        return out

    def backward() -> Any:
        texels, at = ad.TensorXf(tensor), type(coords)(coords)
        leaves = [texels, at] if work.what == "gradients" else [texels]
        dr.enable_grad(leaves)
        texture.set_tensor(texels)
        out = texture.eval(at)
        dr.set_grad(out, cotangent)
        dr.enqueue(dr.ADMode.Backward, out)
        dr.traverse(dr.ADMode.Backward)
        gradients = dr.grad(leaves)
        dr.eval(gradients)
        return gradients

    image = lambda parts: jnp.stack([on_host(p).reshape(shape) for p in parts], -1)
    if work.what == "read":
        return Run(read, wait, image)

    def arrays(gradients: Any) -> Any:
        texels = on_host(gradients[0])
        if work.what == "splat":
            return texels
        return texels, *(on_host(g).reshape(shape) for g in gradients[1])

    return Run(backward, wait, arrays)


def on_host(part: Any) -> jax.Array:
    return jnp.asarray(part.numpy())


def forget() -> None:
    """Gives memory back that Dr.Jit keeps for later."""
    if (dr := holding_memory("drjit")) is not None:
        dr.flush_malloc_cache()
