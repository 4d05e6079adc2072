"""Reads of a texture that carries an explicit sharding."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.experimental import checkify
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from ..._jax.contexts import COUNT
from ..._jax.indexing import everywhere, explicit_sharding
from ..describe.axis import Axis, Role
from ..describe.grids import StoredOrder
from ..describe.levels import CutChain, joined_levels
from ..describe.spec import ReadSpec
from ..rules import primitives
from ..walk.texel_walk import texels_shape
from . import edged_reads
from .counted import with_count
from .cut_reads import EdgedRead, Part, by_halo, by_routing, in_halo
from .method import Halo, Routing, Whole
from .placement import ShardedAccess, is_cut, report_whole

# A read: of texels, a border color, operands, and a spec.
Read = Callable[[jax.Array, Any, Sequence[jax.Array], ReadSpec], jax.Array]


def read_sharded(
    read: Read,
    texels: jax.Array,
    color: jax.Array | None,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    *,
    edged: EdgedRead | None = None,
    splits_over_taps: bool = True,
    chain: CutChain | None = None,
) -> jax.Array:
    """A read, of which each device computes a part if texels carry an explicit sharding.

    Args:
        edged: the same, without a color, of texels in three arrays, if there is one.
        splits_over_taps: whether it is the sum of reads of some of its taps and of the others.
        chain: how the levels of a mip chain are cut.
    """
    placed = explicit_sharding(texels)
    if placed is None or not is_cut(placed):
        return read(whole(texels, spec.axes, chain), color, operands, spec)
    access = ShardedAccess.of(texels.shape, texels.dtype, placed, operands, spec, chain=chain)
    if access is None:
        report_whole(texels.shape, texels.dtype, placed)
        return read(whole(texels, spec.axes, chain), color, operands, spec)
    access = access._replace(splits_over_taps=splits_over_taps)
    method = access.method()
    access.report(method)
    if isinstance(method, Whole):
        return read_whole(read, whole(texels, spec.axes, chain), color, access)
    return reporting(read_in_parts(read, texels, color, access, method, edged), access, method)


def splat_sharded(values: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, placed: NamedSharding) -> jax.Array:
    """A splat whose texels carry a sharding: the transpose of the read of texels that do."""
    if not is_cut(placed):
        return primitives.splat(values, operands, spec)
    shape = texels_shape(spec.axes, values.shape[-1])
    access = ShardedAccess.of(shape, values.dtype, placed, operands, spec.adjoint(values.dtype), values)
    if access is None:
        report_whole(shape, values.dtype, placed)
        return jax.reshard(primitives.splat(values, operands, spec), placed)
    method = access.method()
    access.report(method)
    if isinstance(method, Whole):
        return jax.reshard(primitives.splat(values, operands, spec), placed)

    def read(texels: jax.Array) -> jax.Array:
        return read_in_parts(uncolored_read, texels, None, access, method, edged_reads.read)

    values = jax.reshard(values, jax.eval_shape(read, access.texels).sharding)
    (sums,) = jax.linear_transpose(read, access.texels)(values)
    return reporting(sums, access, method).astype(spec.dtype)


def uncolored_read(texels: jax.Array, color: None, operands: Sequence[jax.Array], spec: ReadSpec) -> jax.Array:
    """The engine's read with zero outside."""
    del color
    return primitives.read(texels, operands, spec)


class Placed(NamedTuple):
    """The operands of a read as each device gets them: cut as the samples are, with samples added that parts need.

    Attributes:
        specs: how each is cut.
    """

    operands: list[jax.Array]
    specs: list[P]

    @classmethod
    def of(cls, access: ShardedAccess) -> "Placed":
        samples = access.samples
        operands = [samples.padded(a) for a in access.operands]
        specs = [samples.spec_of(a.shape) for a in operands]
        return cls([jax.reshard(a, NamedSharding(access.mesh, s)) for a, s in zip(operands, specs)], specs)

    @classmethod
    def as_given(cls, access: ShardedAccess) -> "Placed":
        """The same where no samples are added, and an operand may hold several numbers of each."""
        spec, operands = access.stacked_spec, access.stacked
        specs = [access.samples.spec_of_stacked(a, spec.stack_of(k)) for k, a in enumerate(operands)]
        return cls([jax.reshard(a, NamedSharding(access.mesh, s)) for a, s in zip(operands, specs)], specs)


def read_in_parts(
    read: Read,
    texels: jax.Array,
    color: jax.Array | None,
    access: ShardedAccess,
    method: Halo | Routing,
    edged: EdgedRead | None,
) -> jax.Array:
    """The read on each device."""
    edged = edged if color is None else None
    cut, samples = access.cut, access.samples
    colors, mesh = [] if color is None else [color], access.mesh

    def on_device(texels: jax.Array, colors: list[jax.Array], *operands: jax.Array) -> jax.Array:
        alone = lambda texels, operands, spec: read(texels, colors[0] if colors else None, operands, spec)
        part = Part(alone, texels, cut, edged)
        if isinstance(method, Halo):
            return by_halo(part, operands, spec, method.reach).values
        return by_routing(part, operands, spec, access.capacity(method.slack))

    # Samples that travel, or to which some are added, are taken one number at a time.
    stays = isinstance(method, Halo) and samples.padding[1] == 0
    operands, specs = Placed.as_given(access) if stays else Placed.of(access)
    spec = access.stacked_spec if stays else access.spec
    colors = [jax.reshard(a, NamedSharding(mesh, P())) for a in colors]
    in_specs = cut.spec(texels.ndim), P(), *specs
    run = jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=samples.values_spec())
    return as_given_samples(run(texels, colors, *operands), access)


def read_whole(read: Read, texels: jax.Array, color: jax.Array | None, access: ShardedAccess) -> jax.Array:
    """The read on each device of the whole texture. Each has the samples that it would have otherwise."""
    if access.samples.padding[1]:
        return read(texels, color, access.operands, access.spec)
    values = read(texels, color, Placed.of(access).operands, access.spec)
    return as_given_samples(values, access)


def whole(texels: jax.Array, axes: tuple[Axis, ...], chain: CutChain | None) -> jax.Array:
    """All texels on each device."""
    if chain is None:
        return everywhere(texels)
    levels, *inner = (axis for axis in axes if axis.role is not Role.WEIGHT)
    shapes = [(*(axis.level_size(k) for axis in inner), texels.shape[-1]) for k in range(levels.known_size)]
    joined = joined_levels(texels, shapes, chain)
    return jnp.concatenate([everywhere(level).reshape(-1, texels.shape[-1]) for level in joined])


def as_given_samples(values: jax.Array, access: ShardedAccess) -> jax.Array:
    """Values that are cut as the samples were given, without those of samples that were added; of a warp as they are.

    So the result of a warp is cut as its image is.
    """
    samples, (axis, count) = access.samples, access.samples.padding
    if samples.given == samples.names or (isinstance(access.spec.grid, StoredOrder) and not count):
        return values
    spec = P(*(names or None for names in samples.given), None)
    values = jax.reshard(values, NamedSharding(access.mesh, spec))
    return jax.lax.slice_in_dim(values, 0, samples.shape[axis], axis=axis) if count else values


# Samples that reach too far


def reporting(result: jax.Array, access: ShardedAccess, method: Halo | Routing) -> jax.Array:
    """The result of a read or splat. Samples that reach further than the halo are counted, if a caller wants to know.

    They are an error under checkify. The check stands behind the read: JAX 0.10.2 cannot check a `jax.shard_map` where
    there is an error already.
    """
    if not isinstance(method, Halo):
        return result
    beyond = of_all_examples(count_beyond(access, method))
    message = f"{{count}} samples need texels further than {method.reach} from those of their device; use a larger"
    checkify.debug_check(beyond == 0, f"{message} reach in jaxtex.sharded.Halo.", count=beyond)
    return with_count(result, beyond) if COUNT.value else result


def count_beyond(access: ShardedAccess, method: Halo) -> jax.Array:
    """How many samples need texels beyond the halo of their device."""
    spec, cut, samples = access.spec, access.cut, access.samples

    def on_device(wanted: jax.Array, *operands: jax.Array) -> jax.Array:
        part, given = in_halo(spec, operands, cut, method.reach)
        beyond = jnp.sum(wanted & ~edged_reads.are_available(part, given), dtype=jnp.int32)
        return jax.lax.psum(beyond, samples.all_names(cut))

    operands, specs = Placed.of(access)
    wanted = samples.wanted()
    in_specs = samples.spec_of(wanted.shape), *specs
    run = jax.shard_map(on_device, mesh=access.mesh, in_specs=in_specs, out_specs=P())
    return run(jax.reshard(wanted, NamedSharding(access.mesh, in_specs[0])), *operands)


@custom_vmap
def of_all_examples(count: jax.Array) -> jax.Array:
    """A count, summed over all examples under `jax.vmap`: JAX batches no check under explicit mesh axes."""
    return count


@of_all_examples.def_vmap
def sum_of_examples(axis_size: int, in_batched: Sequence[bool], count: jax.Array) -> tuple[jax.Array, bool]:
    del axis_size, in_batched
    return of_all_examples(jnp.sum(count, 0, dtype=count.dtype)), False
