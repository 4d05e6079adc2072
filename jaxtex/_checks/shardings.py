"""The sharding that a caller asks for."""

# pyright: strict

from typing import Any

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def as_sharding(name: str, sharding: Any) -> NamedSharding:
    """A sharding over explicit axes of a mesh, of the one in use if it does not say of which."""
    if not isinstance(sharding, P | NamedSharding):
        raise TypeError(
            f"{name}: out_sharding is a {type(sharding).__name__}, expected a jax.sharding.PartitionSpec or "
            f"NamedSharding."
        )
    alone = isinstance(sharding, P)
    mesh, spec = (jax.sharding.get_abstract_mesh(), sharding) if alone else (sharding.mesh, sharding.spec)
    types = dict(zip(mesh.axis_names, mesh.axis_types))
    for entry in spec:
        for axis in () if entry is None else entry if isinstance(entry, tuple) else (entry,):
            if types.get(axis) is not jax.sharding.AxisType.Explicit:
                raise ValueError(
                    f"{name}: out_sharding names {axis!r}, which is no explicit axis of the mesh in use, "
                    f"{mesh.axis_names}; make a mesh with axis_types=(jax.sharding.AxisType.Explicit,), and set it by "
                    f"jax.set_mesh."
                )
    return NamedSharding(mesh, spec)
