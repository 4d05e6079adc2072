"""What figures are measured against: copies in the memory of a device, and between devices."""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from ..measure import roofline
from ..peers.protocol import on_gpu, wait
from ..timing import side_by_side
from .measure import AXIS

SIDE = {"small": 64, "large": 8192}  # of what is copied, with four channels


@dataclasses.dataclass(frozen=True)
class Rates:
    """Rates in gigabytes a second.

    Attributes:
        memory: bytes that a copy on one device reads and writes.
        link: by the number of devices, the bytes that each sends while all send to the next one.
        launch: by the number of devices, the milliseconds of a program that does nothing.
    """

    memory: float
    link: dict[int, float]
    launch: dict[int, float]


def rates(size: str, counts: Sequence[int], seconds: float) -> Rates:
    memory, nothing = roofline(SIDE[size], seconds)
    link, launch = dict[int, float](), {1: nothing}
    for count in counts:
        link[count], launch[count] = of_link(SIDE[size], count, seconds)
    return Rates(memory, link, launch)


def of_link(side: int, count: int, seconds: float) -> tuple[float, float]:
    """The rate between devices, and the time of nothing."""
    mesh = jax.make_mesh((count,), (AXIS,), devices=jax.devices()[:count], axis_types=(jax.sharding.AxisType.Auto,))
    around = [(k, (k + 1) % count) for k in range(count)]

    def on_devices(function):
        run = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=P(AXIS), out_specs=P(AXIS)))
        return lambda a: run(a) if on_gpu() else wait(run(a))

    zeros = lambda *shape: jax.jit(
        functools.partial(jnp.zeros, (count * shape[0], *shape[1:])), out_shardings=NamedSharding(mesh, P(AXIS))
    )()
    # A quarter of the image, on each device.
    sent, little = zeros(side // 4, side, 4), zeros(1)
    send, nothing = on_devices(lambda a: jax.lax.ppermute(a, AXIS, around)), on_devices(lambda a: a + 1)
    ms = side_by_side({"send": (lambda: send(sent), wait), "nothing": (lambda: nothing(little), wait)}, seconds, "link")
    return sent.nbytes / count / ms["send"] * 1e-6, ms["nothing"]
