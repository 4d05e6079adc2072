"""How a thread of the adjoint finds a sample: its coordinates, and the channels of its value."""

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...spec import ReadSpec
from ...texel_walk import flat_sizes
from ..cuda_c import C_TYPES, Emitter, UnknownPrimitive, fill, load_row, read_source
from .sample_tiles import PLACE, Lanes, SampleTiles, offset

FOLDER = Path(__file__).parent
# A scalar of C, and its dtype.
Scalar = tuple[str, Any]
# Statements, and expressions for what they compute.
Traced = tuple[list[str], Any]


def scalar(number: Any, dtype: Any = None) -> jax.Array:
    return jnp.broadcast_to(jnp.asarray(number, dtype), (1,))


def joined(found: Any) -> str:
    """Expressions of C, one after the other."""
    return ", ".join(jax.tree.leaves(found))


def of_function(key: str, found: Traced) -> dict[str, object]:
    """The slots of a function: ``key_statements`` and `key`."""
    statements, out = found
    return {f"{key}_statements": statements or [""], key: joined(out)}


class SampleSource:
    """What the sources of all kernels of the adjoint have in common.

    Attributes:
        shape: of the samples, batch axes first.
        read_from, textures: the batch axes of the textures that are read, and of those that are added to.
        arrays, results: what the kernel reads and writes, by name.
        lanes: the channels of a texel among threads.
        samples: how samples are divided, which says how their places are counted.
        tables: the tables of constants that a thread looks into.
    """

    samples: SampleTiles

    def __init__(
        self,
        spec: ReadSpec,
        shape: tuple[int, ...],
        read_from: tuple[int, ...],
        textures: tuple[int, ...],
        arrays: Mapping[str, Any],
        results: Mapping[str, Any],
    ):
        self.spec, self.shape, self.read_from, self.textures = spec, shape, read_from, textures
        self.arrays, self.results = arrays, results
        self.operands = {name: a for name, a in arrays.items() if name.startswith("operand_")}
        self.lanes = Lanes.of(arrays["values"].shape[-1])
        self.several_textures = math.prod(textures) > 1
        self.tables: list[str] = []

    @functools.cached_property
    def coords(self) -> list[Scalar]:
        """The fields of `Coords`: the number of the texture, if there are several, then a coordinate for each axis."""
        one = [jax.ShapeDtypeStruct((1,), a.dtype) for a in self.operands.values()]
        texture = [np.dtype(np.int32)] if self.several_textures else []
        dtypes = (*texture, *(c.dtype for c in jax.eval_shape(lambda *args: tuple(self.spec.grid(*args)), *one)))
        return [(f"at.c{k}", dtype) for k, dtype in enumerate(dtypes)]

    def traced(self, function: Callable[..., Any], *scalars: Scalar) -> Traced:
        """The statements of a function of scalars, and the expressions for what it returns: of each array a list."""
        emitter = Emitter()
        out = emitter.call(function, *((np.array([name], object), dtype) for name, dtype in scalars))
        if emitter.tables and self.tables not in ([], emitter.tables):
            raise UnknownPrimitive("two functions of a thread look into different tables of constants")
        self.tables = emitter.tables or self.tables
        return emitter.lines, jax.tree.map(lambda names: [str(name) for name in np.ravel(names)], out)

    def loaded(self, index: list[jax.Array]) -> list[jax.Array]:
        """The operands of the sample at an index."""
        return [load_row(name, offset(index, a.shape), 1, a.dtype)[:, 0] for name, a in self.operands.items()]

    def find_coords(self) -> Traced:
        def function(*place: jax.Array) -> Any:
            index = self.samples.index(*place)
            texture = [offset(index, self.textures)] if self.several_textures else []
            return [*texture, *map(scalar, self.spec.grid(*self.loaded(index)))]

        return self.traced(function, *PLACE)

    def find_offsets(self) -> Traced:
        def function(*place: jax.Array) -> Any:
            index = self.samples.index(*place)
            texels = offset(index[: len(self.read_from)], self.read_from) * flat_sizes(self.spec.axes)[0]
            return offset(index, self.arrays["values"].shape[:-1]), offset(index, self.shape), texels

        return self.traced(function, *PLACE)

    def slots(self) -> dict[str, Any]:
        """The slots that all templates have."""
        lanes = self.lanes
        return {
            "channels": lanes.channels,
            "width": lanes.width,
            "parts": lanes.parts,
            "overlap": lanes.overlap,
            "load": "load_aligned_row" if lanes.aligned else "load_row",
            "operand_names": ", ".join(self.operands),
            "operands": ", ".join(declared(name, a.dtype) for name, a in self.operands.items()),
            "coordinate_fields": " ".join(f"{C_TYPES[np.dtype(d).name]} {name[3:]};" for name, d in self.coords),
            "parameters": ", ".join(self.parameters()),
            **of_function("coords", self.find_coords()),
            **of_function("offsets", self.find_offsets()),
        }

    def parameters(self) -> list[str]:
        """The parameters of the kernel. What a result starts as is one, but has no name."""
        given = [declared("" if name == "start" else name, a.dtype) for name, a in self.arrays.items()]
        return [*given, *(f"{C_TYPES[a.dtype.name]}* __restrict__ {name}" for name, a in self.results.items())]

    def filled(self, template: str, slots: Mapping[str, Any]) -> str:
        return fill(read_source(FOLDER / template), **slots)


def declared(name: str, dtype: Any) -> str:
    """The declaration of an array that a kernel reads."""
    return f"const {C_TYPES[np.dtype(dtype).name]}* __restrict__ {name}"
