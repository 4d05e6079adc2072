"""Textures that are sharded over several devices: how samples and texels get to each other.

A texture whose texels carry an explicit sharding over one axis (rows, slices or layers) is read and written by the
same functions as any other: `sample`, `gather`, `fetch`, `splat`, surfaces, warps. jaxtex chooses what the devices
send to each other from the sizes of the arrays; `using` overrides that choice, and `explain` prints it.

`build_mipmaps` of a sharded texture shards the large levels of the chain in the same way, and stores the small levels
whole on each device. A level can be sharded if its parts are equal and begin where the parts of the previous level
begin: 4096 rows on 8 devices make parts of 512, 256, 128 rows and so on. If the second level cannot be sharded, no
level is. Under `Routing`, a trilinear or anisotropic read finds all its levels on one device. Under `Halo`, the halo of
each coarser level is half as wide, plus the width of the filter. Each device receives the whole chain in three cases:
for `fetch`, surface functions and the heads of `jaxtex.nn.sample_weighted`; for cubemaps, unless they are sharded along
layers; and for the address modes ``"reflect"`` and ``"sphere"``, which `Routing` does not support in a chain.

Under automatic mesh axes, JAX traces a function before XLA chooses the shardings of its arrays. To use sharded textures
there, give the sharding by `jax.sharding.explicit_axes`::

    read = jax.sharding.explicit_axes(read, axes=("rows",), in_sharding=(PartitionSpec("rows"),))
"""

import contextlib
from collections.abc import Callable, Generator
from typing import Any

import jax

from ._checks.calls import check_function
from ._checks.numbers import as_integer, as_number
from ._checks.words import listing, shown
from ._engine.sharded.access import Halo, Routing, Whole
from ._engine.sharded.counted import total_of
from ._jax.contexts import COUNT, METHOD, REPORT

__all__ = ["Halo", "Routing", "Whole", "count_beyond", "explain", "using"]
__dir__ = listing(__all__)


@contextlib.contextmanager
def using(method: Halo | Routing | Whole) -> Generator[None, None, None]:
    """Chooses what devices send to each other when a sharded texture is read or written inside this context.

    Without this context, jaxtex uses `Routing` if that sends less than the whole texture, and `Whole` otherwise. The
    choice applies to calls that are traced inside the context. A function that `jax.jit` compiled outside of it is
    compiled again.

    Args:
        method: one of

            - ``Halo(reach)``: samples are sharded as the texture is, and each device receives `reach` texels from its
              neighbors on both sides. A sample that needs a texel beyond them returns NaN, or zero for integers.
              `count_beyond` counts these samples, and `jax.experimental.checkify` reports them. This is the fastest
              method where samples reach only a little into the neighbors' parts: small flows and angles, resizes.
            - ``Routing(slack)``: samples travel to the device that stores their texels, and values travel back, in as
              many rounds as necessary. In one round, a device sends at most `slack` times an equal share of its
              samples to each other device. The reads along an anisotropic footprint travel one after the other. A
              sample across the seam of a cube travels to each device that stores one of its texels.
            - ``Whole()``: each device receives the whole texture. Reads with a `key` always work like this.

            `splat` is the transpose of a read, so the methods apply to it too. Under `Halo`, the sums at the halo are
            sent back and added; values that fall beyond it are dropped. Under `Routing`, values travel. Under `Whole`,
            each device adds to a whole texture. Surface writes never send texels: under `Whole`, each device receives
            all samples and writes its own texels; otherwise, samples that are sharded over the devices of the texture
            travel to their texels.

    Returns:
        A context manager.

    Gradients: of any order, with respect to texels and coordinates, as on one device. They are zero for samples that
        reach beyond a halo. The gradient of the texels is sharded as the texels are.

    Raises:
        TypeError: if `method` is none of these.
        ValueError: if `reach` is no integer of at least 0, or `slack` is not above 0.

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        >>> mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Explicit,))
        >>> image = jax.device_put(jnp.ones((64, 48, 3)), NamedSharding(mesh, P("rows")))
        >>> with jt.sharded.using(jt.sharded.Halo(reach=4)):
        ...     turned = jt.warp.rotate(image, angle=jnp.deg2rad(3.0))
        >>> turned.shape
        (64, 48, 3)
    """
    given: Any = method
    if not isinstance(given, Halo | Routing | Whole):
        raise TypeError(
            f"using: method is {shown(method)}, expected jaxtex.sharded.Halo(reach), jaxtex.sharded.Routing() or "
            f"jaxtex.sharded.Whole()."
        )
    if isinstance(given, Halo):
        as_integer("using", "reach", given.reach, 0)
    if isinstance(given, Routing):
        as_number("using", "slack", given.slack, lambda slack: slack > 0, "a number above 0, such as 1.1")
    with METHOD(method):
        yield


def explain(function: Callable[..., Any], *args: Any) -> str:
    """Describes how each read and write of a sharded texture works: the method, what is sent, and the memory it takes.

    Args:
        function: a function of arrays that carry explicit shardings. It is traced, not run.
        args: its arguments.

    Returns:
        One line for each read and write of a sharded texture, with the mebibytes that one device receives and holds,
        estimated from shapes.

    Gradients: none, as there is nothing to differentiate.

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        >>> mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Explicit,))
        >>> image = jax.device_put(jnp.ones((64, 48, 3)), NamedSharding(mesh, P("rows")))
        >>> print(jt.sharded.explain(lambda image: jt.warp.rotate(image, angle=jnp.deg2rad(3.0)), image))
        texels (64, 48, 3) float32, axis 0 in 1 part: Whole(); receives 0 MiB, holds 0.0352 MiB of texels
    """
    check_function("explain", "function", function)
    report = Report()
    with REPORT(report):
        jax.eval_shape(function, *args)
    return "\n".join(report.lines) or "No texture is sharded."


def count_beyond(function: Callable[..., Any], *args: Any) -> jax.Array:
    """Counts the samples that need texels beyond the `Halo` of their device, in all reads and splats of a function.

    Only the count is computed. Call it inside `using`, or call `using` in the function.

    Args:
        function: a function of arrays that carry explicit shardings.
        args: its arguments.

    Returns:
        An int32 scalar, also under `jax.jit`. Every read whose result is used counts: in each step of `jax.lax.scan`,
        for each example under `jax.vmap`, and again where reverse mode recomputes it.

    Gradients: none.

    Raises:
        NotImplementedError: if a read is inside `jax.lax.while_loop` or `jax.shard_map`.

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        >>> mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Explicit,))
        >>> image = jax.device_put(jnp.ones((64, 48, 3)), NamedSharding(mesh, P("rows")))
        >>> with jt.sharded.using(jt.sharded.Halo(reach=4)):
        ...     print(jt.sharded.count_beyond(lambda image: jt.warp.rotate(image, angle=jnp.deg2rad(3.0)), image))
        0
    """
    check_function("count_beyond", "function", function)
    with COUNT(True):
        return total_of(function, *args)


class Report:
    """The lines of a report. JAX traces a function again for each new object in a context."""

    def __init__(self):
        self.lines: list[str] = []
