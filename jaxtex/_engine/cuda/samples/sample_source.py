"""What the kernels of the adjoint have in common: their static side, and how a thread loads a sample."""

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...describe.spec import ReadSpec, Wrt
from ...describe.storage import WithHalo, slice_of
from ...walk.texel_walk import flat_sizes
from ..build.source import fill, read_source
from ..trace.elementwise import C_TYPES
from ..trace.emitter import Emitter, UnknownPrimitive
from .operands import load_numbers
from .sample_tiles import PLACE, Lanes, SampleTiles, offset

FOLDER = Path(__file__).parents[1]
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


class AdjointPlan(NamedTuple):
    """The static side of an adjoint.

    Attributes:
        wrt: the operands that have a cotangent.
        shape: of the samples, batch axes first.
        read_from, textures: the batch axes of the textures that are read, and of those that are added to.
        reach: of a texture in three arrays, how many texels lie on each side of its own; else `None`.
        only_within: of a texture that is stored in part, the part, as in `other_part`, that must hold all texels of a
            sample, or the sample is not added; `None` if all are added.
    """

    spec: ReadSpec
    wrt: Wrt
    shape: tuple[int, ...]
    read_from: tuple[int, ...]
    textures: tuple[int, ...]
    reach: int | None = None
    only_within: tuple[int, int] | None = None

    @property
    def texels_per_texture(self) -> int:
        return flat_sizes(self.spec.axes)[0]

    @property
    def num_texels(self) -> int:
        """The texels of all textures that are added to."""
        return math.prod(self.textures) * self.texels_per_texture


class SampleSource:
    """What the sources of all kernels of the adjoint have in common.

    Attributes:
        arrays, results: what the kernel reads and writes, by name.
        samples: how samples are divided, which says how their places are counted.
        tables: the tables of constants that a thread looks into.
    """

    samples: SampleTiles

    def __init__(self, plan: AdjointPlan, arrays: Mapping[str, Any], results: Mapping[str, Any]):
        self.plan, self.spec, self.arrays, self.results = plan, plan.spec, arrays, results
        self.operands = {name: a for name, a in arrays.items() if name.startswith("operand_")}
        self.tables: list[str] = []

    @functools.cached_property
    def lanes(self) -> Lanes:
        """The channels of a texel among threads."""
        return Lanes.of(self.arrays["values"].shape[-1])

    def traced(self, function: Callable[..., Any], *scalars: Scalar) -> Traced:
        """The statements of a function of scalars, and the expressions for what it returns: of each array a list."""
        emitter = Emitter()
        out = emitter.call(function, *((np.array([name], object), dtype) for name, dtype in scalars))
        if emitter.tables and self.tables not in ([], emitter.tables):
            raise UnknownPrimitive("two functions of a thread look into different tables of constants")
        self.tables = emitter.tables or self.tables
        return emitter.lines, jax.tree.map(lambda names: [str(name) for name in np.ravel(names)], out)

    def loaded(self, index: list[jax.Array]) -> list[jax.Array]:
        """The arguments of the grid for the sample at an index."""
        return load_numbers(self.spec, self.operands, index)

    def find_offsets(self) -> Traced:
        def function(*place: jax.Array) -> Any:
            index = self.samples.index(*place)
            read_from = self.plan.read_from
            texels = offset(index[: len(read_from)], read_from) * self.plan.texels_per_texture
            return offset(index, self.arrays["values"].shape[:-1]), offset(index, self.plan.shape), texels

        return self.traced(function, *PLACE)

    def slots(self) -> dict[str, Any]:
        """The slots that all templates have."""
        lanes = self.lanes
        return {
            "channels": lanes.channels,
            "width": lanes.width,
            "parts": lanes.parts,
            "overlap": lanes.overlap,
            "place_of_value": slice_of(self.arrays["values"]).place("offsets.value", lanes.channels),
            "load": "load_aligned_row" if lanes.aligned else "load_row",
            "operand_names": ", ".join(self.operands),
            "operands": ", ".join(declared(name, a.dtype) for name, a in self.operands.items()),
            "parameters": ", ".join(self.parameters()),
            **of_function("offsets", self.find_offsets()),
        }

    def parameters(self) -> list[str]:
        """The parameters of the kernel. What a result starts as is one, but has no name."""
        given = [declared("" if name.startswith("start") else name, a.dtype) for name, a in expanded(self.arrays)]
        return [*given, *(f"{C_TYPES[a.dtype.name]}* __restrict__ {name}" for name, a in expanded(self.results))]

    def edged(self) -> list[str]:
        """The declarations of arrays that are given in three."""
        given = [(name, a) for name, a in self.arrays.items() if is_read(name, a)]
        read = [a.declared(name, f"const {C_TYPES[a.dtype.name]}") for name, a in given]
        return [*read, *(a.declared(name, "float") for name, a in self.results.items() if isinstance(a, WithHalo))]

    def filled(self, template: str, slots: Mapping[str, Any]) -> str:
        return fill(read_source(FOLDER / template), **slots)


def declared(name: str, dtype: Any, edged: bool = False) -> str:
    """The declaration of an array that a kernel reads; or, of a function in one, of an array that is given in three."""
    c_type = C_TYPES[np.dtype(dtype).name]
    return f"const Edged<const {c_type}>& {name}" if edged else f"const {c_type}* __restrict__ {name}"


def is_read(name: str, array: Any) -> bool:
    """Whether an array is given in three, and more than what a result starts as."""
    return isinstance(array, WithHalo) and name != "start"


def expanded(arrays: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Arrays by their names, those that are given in three by three names."""
    each = (a.arrays(name) if isinstance(a, WithHalo) else {name: a} for name, a in arrays.items())
    return [pair for some in each for pair in some.items()]
