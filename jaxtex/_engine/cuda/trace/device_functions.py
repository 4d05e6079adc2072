"""The functions of a kernel that are traced: whole functions of CUDA C++, each of one thread."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .elementwise import C_TYPES
from .emitter import Emitter, Typed

# An expression of C++, and the dtype of its number.
Scalar = tuple[str, Any]


def scalar(number: Any, dtype: Any = None) -> jax.Array:
    """A number of one thread."""
    return jnp.broadcast_to(jnp.asarray(number, dtype), (1,))


def names_of(array: str, count: int, dtype: Any) -> list[Scalar]:
    """The elements of an array of C++."""
    return [(f"{array}[{k}]", np.dtype(dtype)) for k in range(count)]


class DeviceFunctions:
    """The traced functions of one kernel, in their order.

    Attributes:
        texts: of the functions.
    """

    def __init__(self):
        self.emitter, self.texts = Emitter(), list[str]()

    def add(
        self,
        signature: str,
        comment: str,
        function: Callable[..., Any],
        *args: Scalar,
        exact: bool = False,
    ) -> Any:
        """Adds a function, and returns the shapes and dtypes of what it computes.

        Args:
            signature: its type, name and parameters.
            comment: what it computes, and for what.
            function: from arrays of one number to what the function returns: lists in lists for structs in structs.
            args: expressions for the numbers, of its parameters.
            exact: whether sums and products of float32 are each rounded by themselves.
        """
        self.emitter.fresh = (f"v{k}" for k in itertools.count())
        with self.emitter.scope() as lines, self.emitter.exactly(exact):
            out = self.emitter.typed_call(function, *(Typed(np.array([name], object), dtype) for name, dtype in args))
        self.define(signature, comment, [*lines, f"return {returned(out)};"])
        is_leaf = lambda leaf: isinstance(leaf, Typed)
        return jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a.names), a.dtype), out, is_leaf=is_leaf)

    def define(self, signature: str, comment: str, statements: Sequence[str]) -> None:
        """Adds a function of these statements."""
        body = "".join(f"  {line}\n" for line in statements)
        self.texts.append(f"// {comment}\nDEVICE {signature} {{\n{body}}}\n")

    @property
    def blocks(self) -> list[str]:
        """The tables that the functions look into, and the functions."""
        tables = "".join(f"{table}\n" for table in self.emitter.tables)
        return [tables, *self.texts] if tables else self.texts


def returned(out: Any) -> str:
    """An expression for what a traced function computes: a number, (1,), or the numbers of a row or a struct."""
    if isinstance(out, Typed):
        names = [str(name) for name in np.ravel(out.names)]
        return names[0] if np.ndim(out.names) < 2 else f"{{{', '.join(names)}}}"
    return f"{{{', '.join(map(returned, out))}}}"


def struct_of_numbers(name: str, comment: str, fields: Sequence[Scalar]) -> str:
    """A struct of numbers, by their names and dtypes."""
    lines = "".join(f"  {C_TYPES[np.dtype(dtype).name]} {field};\n" for field, dtype in fields)
    return f"// {comment}\nstruct {name} {{\n{lines}}};\n"
