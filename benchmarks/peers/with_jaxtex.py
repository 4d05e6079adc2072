"""jaxtex itself, and the same work in its default way."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax

import jaxtex as jt

from ..inputs import inputs, rotation
from ..works import Work
from .protocol import CannotError, Run


def sampler(work: Work) -> jt.Sampler:
    options: dict[str, Any] = {
        "address_mode": work.address_mode,
        "filter_mode": work.filter_mode,
        "arithmetic": work.arithmetic,
    }
    if work.deterministic:
        options["deterministic"] = True
    if work.mips:
        options |= {"mipmap_filter_mode": "linear", "max_anisotropy": max(work.anisotropy, 1)}
    if work.dtype == "uint8":
        options["read_mode"] = "normalized_float"
    try:
        return jt.Sampler(**options)
    except ValueError as error:
        raise CannotError(str(error)) from error


def reading(work: Work) -> Callable[..., jax.Array]:
    """`read(texels, *places)`."""
    # Without its texels, lest the program keep them alive.
    how, template = sampler(work), dataclasses.replace(inputs(work).texture, texels=None)
    textured = lambda texels: dataclasses.replace(template, texels=texels)
    if work.batch:
        return lambda texels, theta: jt.warp.spatial_transform(texels, theta, sampler=how)
    if work.coordinates == "generated":
        return lambda texels: jt.warp.warp_affine(texels, rotation(work.samples), sampler=how, inverse_map=True)
    if work.anisotropy:
        return lambda texels, x, y, *steps: jt.sample(textured(texels), (x, y), how, ddx=steps[:2], ddy=steps[2:])
    if work.mips:
        return lambda texels, *places: jt.sample(textured(texels), places[:-1], how, lod=places[-1])
    return lambda texels, *places: jt.sample(textured(texels), places, how)


def differentiated(what: str, read: Callable[..., jax.Array]) -> Callable[..., Any]:
    """The function of `(cotangent, texels, *places)` that does the work."""

    def step(cotangent, *args):
        out, pullback = jax.vjp(read, *args)
        return out, *pullback(cotangent)

    def gradients(cotangent, *args):
        return step(cotangent, *args)[1:]

    def splat(cotangent, texels, *places):
        return jax.vjp(lambda t: read(t, *places), texels)[1](cotangent)[0]

    def slopes(cotangent, texels, *places):
        return jax.vjp(functools.partial(read, texels), *places)[1](cotangent)

    return {"step": step, "gradients": gradients, "splat": splat, "slopes": slopes}[what]


def program(work: Work) -> tuple[Callable[..., Any], tuple[jax.Array, ...]]:
    """The function to compile, and its arguments."""
    data = inputs(work)
    texels = data.texture.texels
    places = () if work.coordinates == "generated" else data.places
    if work.what == "build":
        return lambda t: jt.build_mipmaps(jt.texture2d(t)).texels, (texels,)
    if work.what == "splat" and places:
        how, shape = sampler(work), data.texture.shape
        return lambda values, *coords: jt.splat(values, coords, shape, how).texels, (data.cotangent, *places)
    read = reading(work)
    if work.what == "read":
        return read, (texels, *places)
    return differentiated(work.what, read), (data.cotangent, texels, *places)


def compiled(function: Callable[..., Any], args: tuple[jax.Array, ...]) -> Run:
    function = jax.jit(function)
    return Run(lambda: function(*args))


def jaxtex(work: Work) -> Run:
    return compiled(*program(work))


def by_default(work: Work) -> Run | None:
    """The yardstick of what is asked for specially: float arithmetic, any order of sums, coordinates in arrays."""
    return None if work == work.plain or work.anisotropy else compiled(*program(work.plain))
