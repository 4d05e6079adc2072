"""The primitive that reads by the texture unit of a GPU; elsewhere it computes what the unit would return.

Its derivatives are those of another read, which its callers give (`straight_through`).
"""

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

from ..._jax.primitives import at_front, bind, define
from ..._jax.versions import on_mesh_of
from ..describe.unit import UnitRead, unit_read_p
from ..forms.choice import LOWERINGS


def unit_read(handle: jax.Array, *operands: jax.Array, read: UnitRead) -> jax.Array:
    """The values of a read, S + (C,).

    Args:
        handle: of the texture object, as `jaxtex.unit` makes it: three numbers, uint32.
        operands: the numbers of the samples, arrays of one rank that broadcast to S, then what is kept of the texture.
    """
    return bind(unit_read_p, handle, *operands, read=read)


def by_texels(handle: jax.Array, *operands: jax.Array, read: UnitRead) -> jax.Array:
    del handle
    return read.meaning(*operands)


def abstract(handle: Any, *operands: Any, read: UnitRead) -> Any:
    """The type of the result: samples that are sharded over devices are read there."""
    numbers = operands[: read.num_numbers]
    out, spec = read.type_of(*numbers), []
    for axis in range(len(out.shape) - 1):
        found = (a.sharding.spec[axis] for a in numbers if a.shape[axis] > 1)
        spec.append(next((name for name in found if name is not None), None))
    return on_mesh_of((handle, *operands), out.shape, out.dtype, PartitionSpec(*spec, None))


def batch(args: Sequence[jax.Array], dims: Sequence[int | None], *, read: UnitRead) -> tuple[jax.Array, int]:
    """One more axis of samples."""
    (handle, *operands), (of_handle, *dims) = args, dims
    count = read.num_numbers
    if of_handle is not None or any(dim is not None for dim in dims[count:]):
        raise NotImplementedError(
            "jaxtex.unit: a stack of bound textures is mapped by jax.vmap, but a texture object has one texture; bind "
            "a layered texture, and map its layer."
        )
    numbers = map(at_front, operands[:count], dims[:count])
    return unit_read(handle, *numbers, *operands[count:], read=read), 0


define(unit_read_p, by_texels, static=("read",), batch=batch, abstract=abstract, lowerings=LOWERINGS["unit_read"])
