"""`python -m benchmarks.chains`: reads that follow one another in one program.

A velocity field is moved by itself, again and again: each read looks into the result of the one before, at points that
this result displaces. The cost should grow as the number of reads: then the last column is near 1. On several devices
a batch of fields is cut over them, and XLA partitions the program. `--small` runs on two devices of a CPU.
"""

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt

from .peers.protocol import on_gpu, wait
from .report import Results, parser
from .timing import side_by_side

LENGTHS = (1, 2, 4, 7)
Field = Callable[[jax.Array], jax.Array]


def chain(length: int, address: str) -> Field:
    def moved(velocity: jax.Array) -> jax.Array:
        for _ in range(length):
            velocity = velocity + jt.warp.warp_flow(velocity, velocity, address_mode=address)
        return velocity

    return moved


def gradient(function: Field) -> Field:
    return lambda velocity: jax.vjp(function, velocity)[1](velocity)[0]


def field(shape: tuple[int, ...]) -> jax.Array:
    """Smooth displacements of a texel or so."""
    coarse = jax.random.normal(jax.random.PRNGKey(0), (*[5] * len(shape), len(shape)))
    return 0.1 * jax.image.resize(coarse, (*shape, len(shape)), "linear")


def times(name: str, what: str, address: str, velocity: jax.Array, devices: int, seconds: float) -> dict[str, float]:
    """The milliseconds of each length."""

    def of_length(length: int) -> Field:
        function = chain(length, address) if what == "forward" else gradient(chain(length, address))
        return jax.jit(jax.vmap(function) if devices > 1 else function)

    if devices > 1:
        mesh = jax.make_mesh((devices,), ("devices",), axis_types=(AxisType.Auto,))
        velocity = jax.device_put(jnp.stack([velocity] * devices), NamedSharding(mesh, P("devices")))
    functions = {str(length): of_length(length) for length in LENGTHS}
    # Collectives of a CPU need all of its threads, so there nothing is queued.
    finish = (lambda result: result) if on_gpu() else wait
    runs = {
        length: (lambda function=function: finish(function(velocity)), wait) for length, function in functions.items()
    }
    return side_by_side(runs, seconds, name)


def main() -> int:
    arguments = parser("benchmarks.chains", __doc__, 1.0)
    arguments.add_argument("--small", action="store_true", help="small fields, on two devices of a CPU")
    options = arguments.parse_args()
    if options.small:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", 2)
    results = Results(options, devices=jax.device_count())
    side = 1024 if on_gpu() else 32 if options.small else 256
    shapes = {"2D": (side, side), "3D": (side // 8,) * 3}
    print(f"{'milliseconds of so many reads':52s} " + " ".join(f"{n:9d}" for n in LENGTHS) + "   growth")
    for dimensions, shape in shapes.items():
        for address in ("border", "clamp"):
            for what in ("forward", "gradient"):
                for devices in sorted({1, jax.device_count()}):
                    parts = f", in parts on {devices}" if devices > 1 else ""
                    name = f"{what} {dimensions} {'x'.join(map(str, shape))}, {address}{parts}"
                    if re.search(options.only, name):
                        ms = times(name, what, address, field(shape), devices, options.seconds)
                        results.add(f"chain: {name}", milliseconds=ms)
                        growth = ms[str(LENGTHS[-1])] / LENGTHS[-1] / ms["1"]
                        cells = " ".join(f"{ms[str(length)]:9.3f}" for length in LENGTHS)
                        print(f"{name:52s} {cells} {growth:8.2f}", flush=True)
    print(f"growth: a read of a chain of {LENGTHS[-1]} over one alone; in parts: a field on each device")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
