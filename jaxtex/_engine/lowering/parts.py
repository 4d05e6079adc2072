"""Values that are a part of a larger array, which a kernel loads where they lie.

The cotangents of arrays that a program joins are slices of one array, which XLA copies before a kernel reads them. A
lowering rule sees the operations that make its operands, and so finds the larger array.
"""

import math
from typing import Any, NamedTuple

import jax
from jax.extend.mlir import ir


class Slice(NamedTuple):
    """Which elements of an array are taken: of each of its rows, some that lie side by side.

    Attributes:
        row: the elements of a row.
        start: the first one that is taken.
        count: how many are taken.
    """

    row: int
    start: int
    count: int

    def keeps_aligned(self, width: int) -> bool:
        """Whether loads of so many elements are aligned in the larger array, where they are in one of their own."""
        return self.row % width == 0 and self.start % width == 0


class Part(NamedTuple):
    """An array of the given shape that is a slice of a larger one."""

    whole: jax.Array
    shape: tuple[int, ...]
    slice: Slice

    @property
    def dtype(self) -> Any:
        return self.whole.dtype


def copied(array: jax.Array | Part) -> jax.Array:
    """An array by itself."""
    if not isinstance(array, Part):
        return array
    row, start, count = array.slice
    return array.whole.reshape(-1, row)[:, start : start + count].reshape(array.shape)


class Origin(NamedTuple):
    """A larger array in a program that is being lowered, and what is taken of it."""

    whole: ir.Value
    shape: tuple[int, ...]
    slice: Slice


def find_origin(value: ir.Value) -> Origin | None:
    """The larger array of which an operand is a slice along one axis; `None` if the program does not make it so."""
    value = without_reshapes(value)
    if operation_name(value) != "stablehlo.slice":
        return None
    op = operation(value)
    sizes, taken = shape_of(op.operands[0]), shape_of(value)
    starts, strides = (integers(op, name) for name in ("start_indices", "strides"))
    cut = [k for k, (n, m) in enumerate(zip(sizes, taken)) if n != m]
    if len(cut) != 1 or any(step != 1 for step in strides):
        return None
    inner = math.prod(sizes[cut[0] + 1 :])
    found = Slice(*(numbers[cut[0]] * inner for numbers in (sizes, starts, taken)))
    return Origin(op.operands[0], sizes, found)


def without_reshapes(value: ir.Value) -> ir.Value:
    """The array that holds the same elements in the same order before operations that change its shape alone."""
    while operation_name(value) in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
        op = operation(value)
        dims = integers(op, "broadcast_dimensions") if "broadcast" in op.name else []
        if dims != sorted(dims) or math.prod(shape_of(op.operands[0])) != math.prod(shape_of(value)):
            break
        value = op.operands[0]
    return value


def operation_name(value: ir.Value) -> str:
    """The name of the operation that makes a value; empty for an argument of the program."""
    return "" if isinstance(value.owner, ir.Block) else operation(value).name


def operation(value: ir.Value) -> Any:
    """The operation that makes a value."""
    owner: Any = value.owner
    return owner.operation


def integers(op: Any, attribute: str) -> list[int]:
    """An attribute of an operation that is a list of integers."""
    return [int(n) for n in op.attributes[attribute]]


def shape_of(value: ir.Value) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(value.type).shape)
