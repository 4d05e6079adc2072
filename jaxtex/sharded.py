"""Textures that are cut over devices: how samples meet texels, where that is for the caller to decide.

A texture whose texels carry an explicit sharding over one axis, of rows, slices or layers, is read and written by the
same calls as any other: `sample`, `gather`, `fetch`, `splat`, surfaces, warps. How samples meet texels follows from
sizes, or from `using`.

`build_mipmaps` of such a texture cuts the large levels of the chain alike, and stores the small ones whole on each
device. A level can be cut if its parts are equal and begin where those of the level before do: 4096 rows on 8 devices
make parts of 512, 256, 128 rows and so on. If not even the second level can be cut, no level is. Where samples are
routed, those of a trilinear or an anisotropic read find all their levels on one device. A `Halo` reaches half as far in
each coarser level, and as far as the filter. Each device receives the whole chain for `fetch` and for accesses of a
surface, for chains of cubemaps that are not cut along layers, and under the address modes ``"reflect"`` and
``"sphere"``, which Routing cannot follow through the levels.

Under automatic mesh axes a function is traced before XLA decides how its arrays are cut. `jax.sharding.explicit_axes`
says so for one call::

    read = jax.sharding.explicit_axes(read, axes=("rows",), in_sharding=(PartitionSpec("rows"),))
"""

# pyright: strict, reportUnknownMemberType=false

import contextlib
from collections.abc import Callable, Generator
from typing import Any

import jax

from ._engine.distributed.counted import total_of
from ._engine.distributed.meeting import COUNT, METHOD, REPORT, Halo, Routing, Whole
from ._integers import is_integer

__all__ = ["Halo", "Routing", "Whole", "count_beyond", "explain", "using"]


@contextlib.contextmanager
def using(method: Halo | Routing | Whole) -> Generator[None, None, None]:
    """Decides how samples meet the texels of textures that are cut over devices, in calls inside this context.

    By default samples travel to texels if less moves so than the whole texture, and each device receives the whole
    texture otherwise. It holds for calls that are traced inside the context; a function that `jax.jit` has compiled
    outside is compiled again.

    Args:
        method: one of

            - ``Halo(reach)``: samples are cut as the texture is, and each device receives `reach` texels of its
              neighbors on both sides. Where a sample needs a texel beyond that, its value is NaN, or zero for integers.
              `jax.experimental.checkify` reports how many there are, and `count_beyond` returns it. The fastest where
              samples reach no further: small flows and angles, resizes.
            - ``Routing(slack)``: samples travel to the device that stores their texels, and values travel back, in as
              many rounds as that takes. In a round a device sends `slack` times an equal share to each other device.
              The reads along a footprint travel one after the other. A sample across the seams of a cube travels to
              every device that stores one of its texels.
            - ``Whole()``: each device receives the whole texture. So it is for reads with a `key`, whatever the
              method.

            They hold for `splat` too, which is the transpose of a read: parts of a halo are sent back and added, values
            travel, or each device adds to a whole texture. Values beyond a halo are dropped. Surface writes never move
            texels. Under Whole each device receives all samples, and writes to its own texels. Otherwise samples that
            are cut over the devices of the texture travel to their texels.

    Returns:
        A context manager.

    Gradients: of any order, with respect to texels and coordinates, as without it; zero where a sample reaches too far.
        The gradient of the texels is cut as the texels are.

    Raises:
        TypeError: if `method` is none of these.
        ValueError: if `reach` is no integer of at least 0, or `slack` is not above 0.

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        >>> mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Explicit,))
        >>> image = jax.device_put(jnp.ones((64, 48, 3)), NamedSharding(mesh, P("rows")))
        >>> with jt.sharded.using(jt.sharded.Halo(reach=4)):
        ...     turned = jt.warp.rotate(image, 3.0)
        >>> turned.shape
        (64, 48, 3)
    """
    given: Any = method
    if not isinstance(given, Halo | Routing | Whole):
        raise TypeError(
            f"using: method is {method!r}, expected jaxtex.sharded.Halo(reach), jaxtex.sharded.Routing() or "
            f"jaxtex.sharded.Whole()."
        )
    if isinstance(given, Halo) and not is_integer(given.reach, 0):
        raise ValueError(f"using: reach is {given.reach!r}, expected an integer of at least 0, in texels.")
    if isinstance(given, Routing) and not given.slack > 0:
        raise ValueError(f"using: slack is {given.slack!r}, expected a number above 0, such as 1.1.")
    with METHOD(method):
        yield


def explain(function: Callable[..., Any], *args: Any) -> str:
    """Says how the samples of each read and write meet their texture, what moves, and what each device holds.

    Args:
        function: of arrays, which carry explicit shardings.
        args: its arguments.

    Returns:
        A line for each read and write of a texture that is cut over devices. Sizes are estimated from shapes: what one
        device receives, and what it holds.

    Gradients: none, as there is nothing to differentiate.

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        >>> mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Explicit,))
        >>> image = jax.device_put(jnp.ones((64, 48, 3)), NamedSharding(mesh, P("rows")))
        >>> print(jt.sharded.explain(lambda image: jt.warp.rotate(image, 3.0), image))
        texels (64, 48, 3) float32, axis 0 in 1 part: Whole(); receives 0 MiB, holds 0.0352 MiB of texels
    """
    lines = Lines()
    with REPORT(lines):
        jax.eval_shape(function, *args)
    return "\n".join(lines.found) or "No texture is cut over devices."


def count_beyond(function: Callable[..., Any], *args: Any) -> jax.Array:
    """Counts the samples that need texels beyond the `Halo` of their device, in all reads and splats of a function.

    The function is computed as far as the count needs it. Call it inside the context `using`, or let the function set
    it.

    Args:
        function: of arrays, which carry explicit shardings.
        args: its arguments.

    Returns:
        int32, a scalar; also under `jax.jit`. Each read counts whose result is used: each turn of `jax.lax.scan`, each
        example under `jax.vmap`, and reads that reverse mode computes once more.

    Gradients: none.

    Raises:
        NotImplementedError: if a read stands in `jax.lax.while_loop`, or in `jax.shard_map`.

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        >>> mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Explicit,))
        >>> image = jax.device_put(jnp.ones((64, 48, 3)), NamedSharding(mesh, P("rows")))
        >>> with jt.sharded.using(jt.sharded.Halo(reach=4)):
        ...     print(jt.sharded.count_beyond(lambda image: jt.warp.rotate(image, 3.0), image))
        0
    """
    with COUNT(True):
        return total_of(function, *args)


class Lines:
    """The lines of one report. JAX traces a function again for each new object in a context."""

    def __init__(self):
        self.found: list[str] = []
