"""What is measured: functions of arrays of any number of rows, which are cut over devices along their first axis."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

import jaxtex as jt
from jaxtex.sharded import Halo, Routing

from . import transformer

Arrays = tuple[Any, ...]
ANGLE = 3.0  # degrees
DISPLACEMENT = 2  # voxels, at most
SPOKES = 64
# A position of 8192 texels is rounded to 2^-11 of a texel, and neighbors differ by less than the largest value.
ROUNDED_POSITION = 2.0**-10
# Products of matrices may be rounded to 11 bits, and those of other sizes are added up in another order.
ROUNDED_PRODUCTS = 2.0**-7


@dataclasses.dataclass(frozen=True)
class Work:
    """A work of any number of rows.

    Attributes:
        name: for `--only`.
        title: for tables; `{}` stands for the number of rows.
        make: so many rows -> arrays, or trees of them.
        cut: which of them are cut along their first axis.
        functions: of these arrays, by name.
        strong: the rows that all devices share.
        weak: the rows of each device, or none.
        method: so many rows -> how samples meet texels; none where XLA partitions the program.
        exchange: what devices exchange: a "halo", "routed" samples, or a "sum".
        tolerance: how far results may differ, as a share of the largest value of each array.
        aims: by function, the time on two GPUs over that on one, at most.
        compared: what is compared of a result.
    """

    name: str
    title: str
    make: Callable[[int], Arrays]
    cut: tuple[bool, ...]
    functions: Mapping[str, Callable[..., Any]]
    strong: int
    weak: int | None
    method: Callable[[int], Halo | Routing | None]
    exchange: str
    tolerance: float
    aims: Mapping[str, float] = dataclasses.field(default_factory=dict)
    compared: Callable[[Any], Any] = lambda result: result


def works(size: str) -> list[Work]:
    """Of `size` "small" or "large"."""
    small = size == "small"
    side, depth, plane, batch = (128, 32, 16, 64) if small else (8192, 1024, 768, 65536)
    # Two devices with their share of the weak work have the strong one.
    share = 8 if small else 2
    return [
        Work(
            "rotation",
            f"`rotate` by {ANGLE:g} degrees, {{}}x{side}, C=4",
            functools.partial(picture, width=side),
            (True, False, True),
            {"forward": turned, "gradient of texels": texel_gradient, "gradients of texels and angle": turn_gradients},
            side,
            side // share,
            lambda rows: Halo(reach_of_turn(rows, side)),
            "halo",
            ROUNDED_POSITION,
            {} if small else {"forward": 0.6, "gradient of texels": 0.65, "gradients of texels and angle": 0.65},
        ),
        Work(
            "random",
            f"`sample` at {side // 2}x{side // 2} random places of {{}}x{side}, C=4",
            functools.partial(places, width=side),
            (True, True, True, True),
            {"forward": read, "gradient of texels": read_gradient},
            side,
            None,
            lambda rows: Routing(),
            "routed",
            ROUNDED_POSITION,
            {} if small else {"forward": 1.5, "gradient of texels": 1.5},
        ),
        Work(
            "volume",
            f"`warp_flow` by up to {DISPLACEMENT} voxels, {{}}x{plane}x{plane}, C=1",
            functools.partial(volume, plane=plane),
            (True, True, True),
            {"forward": moved, "gradients of volume and flow": moved_gradients},
            depth,
            depth // share,
            lambda rows: Halo(DISPLACEMENT + 2),
            "halo",
            ROUNDED_POSITION,
        ),
        Work(
            "transformer",
            "spatial transformer's training step, {} digits",
            transformer.inputs,
            (False, False, False, True, True),
            {"step": transformer.step},
            batch,
            batch // share,
            lambda rows: None,
            "sum",
            ROUNDED_PRODUCTS,
            # Adam divides a slope by its size, so what is a rounding of it may move a parameter a whole step.
            compared=lambda result: result[1:],
        ),
    ]


def reach_of_turn(rows: int, width: int) -> int:
    """How far samples of a turned picture lie from their row, at its corners, with the taps of a filter."""
    angle = math.radians(ANGLE)
    return int(width / 2 * math.sin(angle)) + int(rows / 2 * (1 - math.cos(angle))) + 4


# What a turn by a small angle changes: spokes. The cotangent follows them, so that the gradient of the angle is no
# sum of terms that cancel.


@functools.partial(jax.jit, static_argnames=("rows", "width"))
def picture(rows: int, width: int) -> Arrays:
    x, y = jnp.arange(width) - (width - 1) / 2, jnp.arange(rows)[:, None] - (rows - 1) / 2
    around = SPOKES * jnp.arctan2(y, x)[..., None] + jnp.arange(4)
    noise = jax.random.uniform(jax.random.key(0), around.shape)
    return jnp.sin(around) + 0.1 * noise, jnp.float32(math.radians(ANGLE)), jnp.cos(around) + 0.1 * noise


def turned(image: jax.Array, angle: jax.Array, _: jax.Array) -> jax.Array:
    return jt.warp.rotate(image, angle=angle)


def texel_gradient(image: jax.Array, angle: jax.Array, cotangent: jax.Array) -> Any:
    return jax.vjp(lambda image: jt.warp.rotate(image, angle=angle), image)[1](cotangent)


def turn_gradients(image: jax.Array, angle: jax.Array, cotangent: jax.Array) -> Any:
    return jax.vjp(lambda image, angle: jt.warp.rotate(image, angle=angle), image, angle)[1](cotangent)


@functools.partial(jax.jit, static_argnames=("rows", "width"))
def places(rows: int, width: int) -> Arrays:
    keys, samples = jax.random.split(jax.random.key(0), 4), (rows // 2, width // 2)
    shapes = (rows, width, 4), samples, samples, (*samples, 4)
    return tuple(jax.random.uniform(key, shape) for key, shape in zip(keys, shapes))


def read(image: jax.Array, x: jax.Array, y: jax.Array, _: jax.Array) -> jax.Array:
    return jt.sample(jt.texture2d(image), (x, y))


def read_gradient(image: jax.Array, x: jax.Array, y: jax.Array, cotangent: jax.Array) -> Any:
    return jax.vjp(lambda image: jt.sample(jt.texture2d(image), (x, y)), image)[1](cotangent)


@functools.partial(jax.jit, static_argnames=("rows", "plane"))
def volume(rows: int, plane: int) -> Arrays:
    """A volume of noise, a flow of smooth waves, and a cotangent."""
    x, y, z = (jnp.arange(n).reshape(-1, *[1] * k) / plane for k, n in enumerate((plane, plane, rows)))
    waves = (DISPLACEMENT * jnp.sin(2 * jnp.pi * (3 * x + 2 * y + z) + phase) for phase in range(3))
    noise = (jax.random.uniform(jax.random.key(k), (rows, plane, plane, 1)) for k in range(2))
    return next(noise), jnp.stack(list(waves), -1), next(noise)


def moved(volume: jax.Array, flow: jax.Array, _: jax.Array) -> jax.Array:
    return jt.warp.warp_flow(volume, flow)


def moved_gradients(volume: jax.Array, flow: jax.Array, cotangent: jax.Array) -> Any:
    return jax.vjp(jt.warp.warp_flow, volume, flow)[1](cotangent)
