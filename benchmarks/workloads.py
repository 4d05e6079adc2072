"""`python -m benchmarks.workloads`: parts of published models, in jaxtex, in PyTorch and in libraries of kernels.

Each is computed from the same arrays, forward alone and with its gradients for a given cotangent. Results are compared
with ours at a small size first; `--check` stops there. Below each time stands the memory that a call takes.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .models import WORKLOADS, Arrays, Workload
from .peers.protocol import Run, as_jax, on_gpu, optional
from .peers.with_torch import device, tensor, wait
from .report import Results, parser
from .timing import side_by_side

# Positions and sums in another order, of the largest value, by the bytes of a number; and the share of numbers that may
# be on another side of a texel's center, where slopes jump.
TOLERANCES, KINKS = {2: 1e-2, 4: 2e-3}, 1e-2


def prepared(work: Workload, sizes: dict[str, Any]) -> tuple[Arrays, jax.Array]:
    """The inputs, and a cotangent of the result."""
    args = jax.jit(lambda key: work.inputs(key, **sizes))(jax.random.PRNGKey(0))
    out = jax.eval_shape(lambda *args: work.ours(*args, **sizes), *args)
    return args, jax.random.normal(jax.random.PRNGKey(1), out.shape).astype(out.dtype)


def wrt(work: Workload, sizes: dict[str, Any]) -> int:
    """How many of the inputs have gradients; of pyramids and grids, as many as there are levels."""
    return work.wrt or sizes["levels"]


def program(work: Workload, sizes: dict[str, Any], what: str) -> Callable[..., Any]:
    """The function of `(cotangent, *args)` that is timed: the result alone, or with its gradients."""
    count = wrt(work, sizes)

    def run(cotangent: jax.Array, *args: jax.Array) -> Any:
        forward = lambda *some: work.ours(*some, *args[count:], **sizes)
        if what == "forward":
            return (forward(*args[:count]),)
        out, pullback = jax.vjp(forward, *args[:count])
        return out, *pullback(cotangent)

    return run


def by_jaxtex(function: Callable[..., Any], given: tuple[Arrays, jax.Array]) -> Run:
    args, cotangent = given
    return Run(lambda: function(cotangent, *args))


def competitors(work: Workload) -> dict[str, Callable[..., Any]]:
    """The functions that do the same, of the libraries that are there."""
    if not device():
        return {}
    kernels = {name: function for name, function in work.kernels.items() if on_gpu() and optional(name) is not None}
    plain = work.theirs if optional(work.needs) is not None else None
    return ({} if plain is None else {"torch": plain}) | kernels


def by_torch(
    function: Callable[..., Any], work: Workload, sizes: dict[str, Any], what: str, given: tuple[Arrays, jax.Array]
) -> Run:
    """The work by a function of PyTorch's tensors."""
    torch, (args, cotangent), count = optional("torch"), given, wrt(work, sizes)
    args = [transposed(tensor(a), work.axes.get(k)) for k, a in enumerate(args)]
    cotangent = transposed(tensor(cotangent), work.axes.get(-1))

    def start() -> Any:
        if what == "forward":
            with torch.no_grad():
                return (function(torch, *args, **sizes),)
        out = function(torch, *args, **sizes)
        return out, *torch.autograd.grad(out, args[:count], cotangent)

    def in_our_order(parts: Any) -> tuple[jax.Array, ...]:
        orders = (work.axes.get(k) for k in (-1, *range(count)))
        back = (None if order is None else tuple(int(k) for k in np.argsort(order)) for order in orders)
        return tuple(as_jax(transposed(part.detach(), order)) for part, order in zip(parts, back))

    if what != "forward":
        for leaf in args[:count]:
            leaf.requires_grad_()
    return Run(start, wait, in_our_order)


def transposed(part: Any, order: tuple[int, ...] | None) -> Any:
    """A tensor with its axes in another order, in memory too."""
    return (part if order is None else part.permute(order)).contiguous()


def difference(function: Callable[..., Any], work: Workload, sizes: dict[str, Any]) -> float:
    """The largest share of numbers of a result by which a function of PyTorch's tensors differs."""
    given = prepared(work, sizes)
    theirs = by_torch(function, work, sizes, "gradients", given)
    ours = by_jaxtex(jax.jit(program(work, sizes, "gradients")), given).start()
    found = theirs.arrays(theirs.wait(theirs.start()))
    shapes = [[a.shape for a in parts] for parts in (ours, found)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{work.name}: shapes {shapes[1]} in place of {shapes[0]}")
    return max(map(beyond, ours, found))


def beyond(ours: jax.Array, theirs: jax.Array) -> float:
    """The share of numbers that differ."""
    a, b = ours.astype(jnp.float32), theirs.astype(jnp.float32)
    return float(jnp.mean(~(jnp.abs(a - b) <= TOLERANCES[ours.dtype.itemsize] * jnp.abs(a).max())))


def peak(run: Run) -> float:
    """MiB that PyTorch held at most during a call, on a GPU."""
    cuda = optional("torch").cuda
    cuda.synchronize()
    cuda.reset_peak_memory_stats()
    run.wait(run.start())
    return cuda.max_memory_allocated() / 2.0**20


def memory(function: Any, given: tuple[Arrays, jax.Array], theirs: dict[str, Run]) -> dict[str, float]:
    """MiB of inputs, results and temporaries of our program, and PyTorch's peak with each library."""
    args, cotangent = given
    analysis = function.lower(cotangent, *args).compile().memory_analysis()
    parts = {"inputs": "argument", "results": "output", "temporary": "temp"}
    ours = {name: getattr(analysis, f"{part}_size_in_bytes") / 2.0**20 for name, part in parts.items()}
    return ours | {f"peak of {name}": peak(run) for name, run in theirs.items() if on_gpu()}


def rows(
    work: Workload, sizes: dict[str, Any], agreeing: dict[str, Any], seconds: float
) -> Iterator[tuple[str, dict[str, float], dict[str, float]]]:
    """What is timed, times and memory: of the result alone, and with its gradients."""
    given = prepared(work, sizes)
    for what in ("forward", "gradients"):
        function = jax.jit(program(work, sizes, what))
        ours = by_jaxtex(function, given)
        theirs = {name: by_torch(other, work, sizes, what, given) for name, other in agreeing.items()}
        runs = {"jaxtex": ours, **theirs}
        times = side_by_side({k: (run.start, run.wait) for k, run in runs.items()}, seconds, work.name)
        yield what, times, memory(function, given, theirs)


def show(name: str, what: str, times: dict[str, float], memory: dict[str, float]) -> None:
    ours = times["jaxtex"]
    others = (f"{other} {ms:.3f} ({ours / ms:.2f})" for other, ms in times.items() if other != "jaxtex")
    print(f"{name:48s} {what:9s} {ours:9.3f}  {'  '.join(others)}")
    print("  MiB: " + ", ".join(f"{part} {mib:.0f}" for part, mib in memory.items()), flush=True)


def compared(work: Workload) -> Iterator[tuple[str, Any, float]]:
    """Each competitor, its function, and the share of numbers at the small size that differ from ours."""
    for name, function in competitors(work).items():
        yield name, function, difference(function, work, work.small)


def main() -> int:
    arguments = parser("benchmarks.workloads", __doc__, 2.0)
    arguments.add_argument("--small", action="store_true", help="small sizes")
    arguments.add_argument("--check", action="store_true", help="compare at the small sizes, and stop")
    options = arguments.parse_args()
    results = Results(options)
    failed = False
    print(f"{'milliseconds':58s} {'jaxtex':>9s}  others, and in parentheses jaxtex's time over theirs")
    for work in WORKLOADS:
        if not re.search(options.only, work.name):
            continue
        agreeing = dict[str, Any]()
        for name, function, share in compared(work):
            if share > KINKS:
                print(f"{work.name}: {name} differs at {share:.2%} of all numbers")
                failed = True
                continue
            agreeing[name] = function
            if options.check:
                print(f"{work.name}: {name} agrees, {share:.2%} beyond")
        if options.check:
            continue
        sizes = work.small if options.small else work.sizes
        for what, times, mib in rows(work, sizes, agreeing, options.seconds):
            results.add(f"{work.name}, {what}", milliseconds=times, MiB=mib)
            show(work.name, what, times, mib)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
