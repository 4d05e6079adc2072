"""`python -m benchmarks.partition`: programs that XLA partitions over all devices, beside one device with its share.

A program takes as long as one device with that share, at best: then the ratio is 1. The result is compared with that of
the whole on one device. `--small` runs on the devices of a CPU, for which it makes two.
"""

import collections
import dataclasses
import os
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt

from .inputs import matrices, rotated
from .peers.protocol import on_gpu, wait
from .report import Results, parser
from .timing import side_by_side

COLLECTIVE = re.compile(r"\b(all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")
KERNEL = "xla.gpu.ptx"
CUT, WHOLE = P("devices"), P()


@dataclasses.dataclass(frozen=True)
class Program:
    """A function, its arguments, and how each is cut."""

    name: str
    function: Callable[..., Any]
    args: tuple[jax.Array, ...]
    specs: tuple[P, ...]


def read(texels: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    return jt.sample(jt.texture2d(texels), (x, y))


def splatted(shape: tuple[int, ...]) -> Callable[..., jax.Array]:
    return lambda values, x, y: jt.splat(values, (x, y), shape).texels


def gradients(function: Callable[..., jax.Array]) -> Callable[..., Any]:
    return lambda cotangent, *args: jax.vjp(function, *args)[1](cotangent)


def step(cotangent: jax.Array, images: jax.Array, theta: jax.Array) -> Any:
    """A spatial transformer, forward and its gradients."""
    out, pullback = jax.vjp(jt.warp.spatial_transform, images, theta)
    return out, *pullback(cotangent)


def programs(side: int, batch: int, image: int) -> list[Callable[[], Program]]:
    """The programs, made one by one, as each fills much memory."""
    key = jax.random.PRNGKey(0)

    def flat(what: str, channels: int) -> Program:
        texels, values = jax.random.normal(key, (2, side, side, channels))
        at, name = rotated(side, 2), f"{what} {side}x{side}, C={channels}"
        if what == "read":
            return Program(name, read, (texels, *at), (WHOLE, CUT, CUT))
        if what == "splat":
            return Program(name, splatted(texels.shape), (values, *at), (CUT,) * 3)
        return Program(name, gradients(read), (values, texels, *at), (CUT, WHOLE, CUT, CUT))

    def transformer() -> Program:
        images, cotangent = jax.random.normal(key, (2, batch, image, image, 3))
        args = cotangent, images, matrices(key, batch)
        return Program(f"spatial transformer step {batch}x{image}x{image}, C=3", step, args, (CUT,) * 3)

    def batched(what: str) -> Program:
        n = side // 4
        texels, values = jax.random.normal(key, (2, 16, n, n, 4))
        at = tuple(jnp.broadcast_to(c, (16, n, n)) for c in rotated(n, 2))
        function, args = jax.vmap(read), (texels, *at)
        if what == "gradients":
            function, args = gradients(function), (values, *args)
        return Program(f"{what} of vmap(sample), 16 textures {n}x{n}, C=4", function, args, (CUT,) * len(args))

    kinds = [("read", 4), ("splat", 4), ("splat", 1), ("gradients", 4), ("gradients", 1)]
    return [
        *(lambda kind=kind: flat(*kind) for kind in kinds),
        transformer,
        *(lambda what=what: batched(what) for what in ("read", "gradients")),
    ]


def error(found: Any, expected: Any) -> float:
    """The largest difference, over the largest value of its array."""
    one = jax.devices()[0]
    beyond = lambda a, b: float(jnp.abs(jax.device_put(a, one) - b).max() / jnp.abs(b).max())
    return max(map(beyond, jax.tree.leaves(found), jax.tree.leaves(expected)))


def figures(program: Program, mesh: Mesh, seconds: float) -> dict[str, Any]:
    count, one = mesh.size, jax.devices()[0]
    placed = [jax.device_put(a, NamedSharding(mesh, spec)) for a, spec in zip(program.args, program.specs)]
    alone = [jax.device_put(a, one) for a in program.args]
    share = [jax.device_put(a[: len(a) // count] if spec == CUT else a, one) for a, spec in zip(alone, program.specs)]
    function = jax.jit(program.function)
    text = function.lower(*placed).compile().as_text()
    collectives = collections.Counter(COLLECTIVE.findall(text))
    difference = error(wait(function(*placed)), function(*alone))
    runs = {"parts": placed, "share": share, "whole": alone}
    # Collectives of a CPU need all of its threads, so there nothing is queued.
    finish = (lambda result: result) if on_gpu() else wait
    calls = {name: (lambda args=args: finish(function(*args)), wait) for name, args in runs.items()}
    ms = side_by_side(calls, seconds, program.name)
    return {"milliseconds": ms, "error": difference, "kernels": text.count(KERNEL), "collectives": collectives}


def line(name: str, figures: dict[str, Any]) -> str:
    ms = figures["milliseconds"]
    what = ", ".join(f"{n} {kind}" for kind, n in sorted(figures["collectives"].items())) or "none"
    times = f"{ms['parts']:9.3f} {ms['share']:9.3f} {ms['whole']:9.3f} {ms['parts'] / ms['share']:7.2f}"
    return f"{name:52s} {times} {figures['error']:9.1e} {figures['kernels']:8d}  {what}"


def main() -> int:
    arguments = parser("benchmarks.partition", __doc__, 1.0)
    arguments.add_argument("--small", action="store_true", help="small arrays, on two devices of a CPU")
    options = arguments.parse_args()
    if options.small and "XLA_FLAGS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", 2)
    count = jax.device_count()
    if count < 2:
        raise SystemExit("one device: there is nothing to cut; take more, or --small")
    results = Results(options, devices=count)
    mesh = jax.make_mesh((count,), ("devices",), axis_types=(AxisType.Auto,))
    head = f"{'parts':>9s} {'a share':>9s} {'whole':>9s} {'ratio':>7s} {'error':>9s} {'kernels':>8s}  collectives"
    print(f"{'milliseconds':52s} {head}")
    for make in programs(*((64, 4, 16) if options.small else (4096, 64, 224))):
        program = make()
        if re.search(options.only, program.name):
            found = figures(program, mesh, options.seconds)
            results.add(f"{program.name}, on {count}", **found)
            print(line(program.name, found), flush=True)
    print("parts: on all devices; a share: on one device, of what one of them has; ratio: parts over a share")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
