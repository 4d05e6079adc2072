"""The arrays of a primitive of a read: their contents, and their storage."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive

from ..._jax import primitives
from .operands import Shaped
from .spec import TEXELS, ReadSpec, Wrt

# A read; its rules are in `rules/primitives.py`.
read_p = Primitive("texture_read")


class Content(Enum):
    """The contents of an array, and its dimensions after the batch axes."""

    TEXTURE = "texels, sizes + (C,)"
    COLOR = "one texel, (C,)"
    VALUES = "values of samples, S + (C,)"
    SAMPLES = "numbers of samples, S; an operand's broadcast to it"


class Signature(NamedTuple):
    """What a primitive's arrays hold: its arguments before the operands of the grid, and its results."""

    operands: Callable[[ReadSpec, Wrt], tuple[Content, ...]]
    results: Callable[[ReadSpec, Wrt], tuple[Content, ...]]

    def makes_texture(self, spec: ReadSpec, wrt: Wrt) -> bool:
        """Whether a result is a sum into texels."""
        return Content.TEXTURE in self.results(spec, wrt)

    def textures(self, spec: ReadSpec, wrt: Wrt) -> tuple[int, ...]:
        """The positions of the arguments that hold texels or the border color."""
        return tuple(k for k, a in enumerate(self.operands(spec, wrt)) if a in (Content.TEXTURE, Content.COLOR))


def of_wrt(wrt: Wrt) -> tuple[Content, ...]:
    """The contents of the tangents, or the cotangents, of texels and operands in `wrt`."""
    return tuple(Content.TEXTURE if k == TEXELS else Content.SAMPLES for k in wrt)


READ = Signature(
    lambda spec, _: (Content.TEXTURE, Content.COLOR) if spec.has_color else (Content.TEXTURE,),
    lambda spec, _: (Content.VALUES,) * max(1, len(spec.derivatives)),
)
SPLAT = Signature(lambda *_: (Content.VALUES,), lambda *_: (Content.TEXTURE,))
PUSHFORWARD = Signature(lambda _, wrt: (*of_wrt(wrt), Content.TEXTURE), lambda *_: (Content.VALUES,))
PULLBACK = Signature(lambda *_: (Content.VALUES, Content.TEXTURE), lambda _, wrt: of_wrt(wrt))


# Storage


class WholeStorage(NamedTuple):
    """The storage in which every texture, and the values of samples, are one whole array."""


WHOLE = WholeStorage()


class Slice(NamedTuple):
    """The storage in which values of samples are a slice of a larger array: adjacent elements of each of its rows.

    Attributes:
        shape: the shape of the values.
        row: the number of elements of a row of the larger array.
        start: the first element of a row that belongs to the slice.
        count: the number of elements of a row that belong to the slice.
    """

    shape: tuple[int, ...]
    row: int
    start: int
    count: int

    def keeps_aligned(self, width: int) -> bool:
        """Whether groups of `width` elements that would be aligned in a whole array are aligned in the larger one."""
        return self.row % width == 0 and self.start % width == 0


class WithHalo(NamedTuple):
    """A texture in three arrays, which follow each other along the first axis.

    Attributes:
        own: the texels of this device.
        before, after: the halo, which neighbors have sent: two arrays of equal shape.
    """

    own: jax.Array
    before: jax.Array
    after: jax.Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.own.shape[0] + 2 * self.before.shape[0], *self.own.shape[1:]

    @property
    def dtype(self) -> np.dtype:
        return self.own.dtype

    @property
    def ends(self) -> tuple[int, int]:
        """The offsets of the first element of `own` and of `after`, counted from the first of `before`."""
        row = math.prod(self.own.shape[1:])
        return self.before.shape[0] * row, (self.before.shape[0] + self.own.shape[0]) * row

    def arrays(self, name: str) -> dict[str, jax.Array]:
        """The arrays by their names in a kernel, in which this texture is called `name`."""
        return {f"{name}_before": self.before, f"{name}_own": self.own, f"{name}_after": self.after}


class HaloStorage(NamedTuple):
    """The storage in which a texture and its cotangent are three arrays, a `WithHalo`.

    A sample that needs texels that are not stored has no gradient.

    Attributes:
        reach: the number of texels of the halo on each side.
        marks_missing: whether the value of such a sample is NaN, if floating; otherwise it is zero.
    """

    reach: int
    marks_missing: bool = False

    def divided(self, texels: jax.Array) -> WithHalo:
        """The three arrays, from the whole texture."""
        before, own, after = jnp.split(texels, [self.reach, texels.shape[0] - self.reach])
        return WithHalo(own, before, after)

    def missing(self, dtype: np.dtype) -> float:
        """The value of a sample that needs texels that are not stored."""
        return jnp.nan if self.marks_missing and jnp.issubdtype(dtype, jnp.floating) else 0


Storage = WholeStorage | Slice | HaloStorage


class Sliced(NamedTuple):
    """Values of samples that are a slice of a larger array."""

    whole: Any  # an array, or the shape and dtype of one that is to be made
    slice: Slice

    @property
    def shape(self) -> tuple[int, ...]:
        return self.slice.shape

    @property
    def dtype(self) -> np.dtype:
        return self.whole.dtype


# A view: one argument in the sense of `Content`, which may be several arrays, or a slice of one
View = jax.Array | WithHalo | Sliced


def views(args: Sequence[Any], contents: Sequence[Content], storage: Storage) -> list[Any]:
    """The arrays of a primitive, grouped into views.

    Args:
        args: the arrays, or the objects that JAX passes to rules in their place.
        contents: the contents of the views before the operands of the grid.
    """
    rest = iter(args)

    def view(content: Content) -> View:
        if content is Content.TEXTURE and isinstance(storage, HaloStorage):
            return WithHalo(next(rest), next(rest), next(rest))
        return Sliced(next(rest), storage) if content is Content.VALUES and isinstance(storage, Slice) else next(rest)

    return [*map(view, contents), *rest]


def arrays_of(view: View) -> Sequence[jax.Array]:
    """The arrays of a view."""
    return view if isinstance(view, WithHalo) else [view.whole if isinstance(view, Sliced) else view]


def bind(p: Primitive, *args: View, storage: Storage = WHOLE, **params: Any) -> Any:
    """Binds a primitive of a read to views."""
    return primitives.bind(p, *(a for view in args for a in arrays_of(view)), storage=storage, **params)


def where_whole(rule: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls `rule`, which takes no storage, for whole arrays, and `otherwise` for others."""

    def run(*args: Any, storage: Storage = WHOLE, **params: Any) -> Any:
        return rule(*args, **params) if storage == WHOLE else otherwise(*args, storage=storage, **params)

    return run


def whole_array(view: View) -> jax.Array:
    """A view as one whole array, by a copy if need be."""
    if isinstance(view, WithHalo):
        return jnp.concatenate([view.before, view.own, view.after])
    if not isinstance(view, Sliced):
        return view
    _, row, start, count = view.slice
    return view.whole.reshape(-1, row)[:, start : start + count].reshape(view.shape)


def slice_of(values: Shaped | Sliced) -> Slice:
    """The slice of an array that holds `values`; a whole array is a slice whose rows are channels."""
    return values.slice if isinstance(values, Sliced) else Slice(values.shape, values.shape[-1], 0, values.shape[-1])


# Concatenated results


class ConcatenatedRead(NamedTuple):
    """The static half of one of several reads whose results are concatenated; with `wrt`, of its tangent."""

    spec: ReadSpec
    batch: int
    num_operands: int
    wrt: Wrt | None = None


def each_part(
    parts: Sequence[ConcatenatedRead], args: Sequence[Any]
) -> Iterator[tuple[ConcatenatedRead, Sequence[Any], Any, Sequence[Any]]]:
    """The parts, each with its tangents, its texels and its operands."""
    rest = list(args)
    for part in parts:
        count = len(part.wrt or ())
        last = count + 1 + part.num_operands
        yield part, rest[:count], rest[count], rest[count + 1 : last]
        del rest[:last]


def slices_of(shapes: Sequence[tuple[int, ...]], row_axes: int) -> list[Slice]:
    """The slices that results have in their concatenation. Their first `row_axes` axes become its rows."""
    counts = [math.prod(shape[row_axes:]) for shape in shapes]
    starts = itertools.accumulate(counts, initial=0)
    return [Slice(shape, sum(counts), start, count) for shape, start, count in zip(shapes, starts, counts)]
