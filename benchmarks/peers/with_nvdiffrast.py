"""nvdiffrast's `texture`, on a GPU: images, mip chains whose levels have gradients of their own, cubemaps."""

import functools
from typing import Any

import jax.numpy as jnp

from ..inputs import Inputs, inputs
from ..works import Work
from .protocol import Run, on_gpu, optional
from .with_torch import device, ours, tensor, wait

BOUNDARIES = {"clamp": "clamp", "wrap": "wrap", "border": "zero"}


def nvdiffrast(work: Work) -> Run | None:
    plain = work.given == work.plain and work.dtype == "float32" and work.what != "step" and not work.anisotropy
    if not plain or work.kind == "3d" or work.address_mode not in BOUNDARIES or not on_gpu() or not device():
        return None
    if (dr := optional("nvdiffrast.torch")) is None:
        return None
    data, torch = inputs(work), optional("torch")
    levels = [tensor(level)[None].contiguous() for level in data.texture.levels]
    if work.what == "build":
        chain = functools.partial(read_chain, dr, torch, levels[0], data)
        return Run(lambda: dr.texture_construct_mip(levels[0]), wait, chain)
    uv = torch.stack([tensor(c) for c in data.coords], -1)[None].contiguous()
    lod = None if data.lod is None else tensor(data.lod)[None].contiguous()
    boundary = "cube" if work.kind == "cubemap" else BOUNDARIES[work.address_mode]
    mode = "linear-mipmap-linear" if work.mips else "linear"

    def read() -> Any:
        mips = {"mip_level_bias": lod, "mip": levels[1:]} if work.mips else {}
        return dr.texture(levels[0], uv, filter_mode=mode, boundary_mode=boundary, **mips)

    if work.what == "read":
        return Run(read, wait, lambda out: ours(out[0]))
    # Its backward pass computes the gradient in the coordinates whether it is wanted or not.
    wanted = levels if work.what == "splat" else [*levels, uv, *([] if lod is None else [lod])]
    for leaf in wanted:
        leaf.requires_grad_()
    out, cotangent = read(), tensor(data.cotangent)[None].contiguous()

    def arrays(gradients: Any) -> Any:
        chain = packed([ours(g[0]) for g in gradients[: len(levels)]])
        if work.what == "splat":
            return chain
        d_uv, *d_lod = gradients[len(levels) :]
        return chain, *(ours(d) for d in d_uv[0].unbind(-1)), *(ours(d[0]) for d in d_lod)

    return Run(lambda: torch.autograd.grad(out, wanted, cotangent, retain_graph=True), wait, arrays)


def packed(levels: list[Any]) -> Any:
    """The levels as jaxtex holds a chain; one level as it is."""
    if len(levels) == 1:
        return levels[0]
    return jnp.concatenate([level.reshape(-1, level.shape[-1]) for level in levels])


def read_chain(dr: Any, torch: Any, base: Any, data: Inputs, mip: Any) -> Any:
    """The texels of a chain that only `texture` can look into: a read of each texel at its center."""
    levels, side = [base], data.texture.shape[0]
    while (side := side // 2) > 0:
        row = (torch.arange(side, device=base.device) + 0.5) / side
        v, u = torch.meshgrid(row, row, indexing="ij")
        lod = torch.full((1, side, side), float(len(levels)), device=base.device)
        uv = torch.stack([u, v], -1)[None].contiguous()
        how = {"mip_level_bias": lod, "mip": mip, "filter_mode": "linear-mipmap-linear", "boundary_mode": "clamp"}
        levels.append(dr.texture(base, uv, **how))
    return packed([ours(level[0]) for level in levels])
