"""`python -m benchmarks.memory`: what a read and its gradients take beside their inputs and results."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .inputs import inputs
from .peers.protocol import on_gpu
from .peers.with_jaxtex import reading
from .report import Results, parser
from .works import Work, volume

MIB = 2.0**20
TARGET = 0.10  # of inputs and outputs, on a GPU


def works(size: int) -> list[Work]:
    square = lambda side, samples, c, **how: Work("gradients", side, samples, c, **how)
    return [
        square(size, size, 4),
        square(max(size // 4, 4), max(size // 4, 4), 64),
        square(64, size, 4),
        square(volume(2 * size), volume(2 * size), 1, kind="3d"),
        square(size, size, 4, mips=True),
        square(max(size // 4, 4), size, 4, kind="cubemap", coordinates="panorama"),
    ]


def value_and_gradients(work: Work) -> tuple[Callable[..., Any], tuple[jax.Array, ...]]:
    """A read and its gradients in all inputs, for a cotangent that is an input too: in training another layer's."""
    read, data = reading(work), inputs(work)
    args = (data.texture.texels, *data.places)
    cotangent = jax.random.normal(jax.random.PRNGKey(0), jax.eval_shape(read, *args).shape)

    def loss(cotangent: jax.Array, *args: jax.Array) -> tuple[jax.Array, jax.Array]:
        out = read(*args)
        return jnp.sum(out * cotangent), out

    return jax.value_and_grad(loss, argnums=tuple(range(1, len(args) + 1)), has_aux=True), (cotangent, *args)


def statistics() -> dict[str, int]:
    """What the device's allocator counts; empty where it counts nothing."""
    return jax.devices()[0].memory_stats() or {}


def measured(compiled: Callable[..., Any], args: tuple[jax.Array, ...]) -> str:
    """The most that was allocated during a call, inputs included."""
    before = statistics()
    if "peak_bytes_in_use" not in before:
        return "not counted here"
    result = jax.block_until_ready(compiled(*args))
    peak = statistics()["peak_bytes_in_use"]
    del result
    # A peak is never reset: one that did not rise is only a bound.
    bound = "" if peak > before["peak_bytes_in_use"] else "at most "
    held = before["bytes_in_use"] - sum(a.nbytes for a in args)
    return f"{bound}{(peak - held) / MIB:.1f}"


def main() -> int:
    arguments = parser("benchmarks.memory", __doc__, None)
    arguments.add_argument("--size", type=int, help="texels and samples along a side (default 2048 on a GPU, else 512)")
    options = arguments.parse_args()
    size = options.size or (2048 if jax.default_backend() == "gpu" else 512)
    results = Results(options)
    print(f"{'MiB':44s} {'inputs':>9s} {'outputs':>9s} {'temporary':>9s} {'share':>7s}  measured peak")
    for work in sorted(works(size), key=lambda work: work.side**work.dimensions * work.channels):
        if not re.search(options.only, work.name):
            continue
        function, args = value_and_gradients(work)
        compiled = jax.jit(function).lower(*args).compile()
        sizes = compiled.memory_analysis()
        inside, out, extra = (getattr(sizes, f"{name}_size_in_bytes") / MIB for name in ("argument", "output", "temp"))
        share = extra / (inside + out)
        aim = f"  ({TARGET:.0%}: {'met' if share <= TARGET else 'missed'})" if on_gpu() else ""
        figures = f"{inside:9.1f} {out:9.1f} {extra:9.1f} {share:7.1%}"
        peak = measured(compiled, args)
        results.add(f"memory of {work.name}", MiB={"inputs": inside, "results": out, "temporary": extra, "peak": peak})
        print(f"{work.name:44s} {figures}  {peak}{aim}", flush=True)
    print("share: temporaries of the compiled program over its inputs and outputs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
