"""The arrays of a primitive of a read: what they hold, and where they lie."""

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


class Content(Enum):
    """What an array holds behind its batch axes: its dimensions."""

    TEXTURE = "texels, sizes + (C,)"
    COLOR = "one texel, (C,)"
    VALUES = "values of samples, S + (C,)"
    SAMPLES = "numbers of samples, S; an operand's broadcast to it"


class Layout(NamedTuple):
    """What the arrays of a primitive hold: the arguments before the operands of the grid, and the results."""

    operands: Callable[[ReadSpec, Wrt], tuple[Content, ...]]
    results: Callable[[Wrt], tuple[Content, ...]]

    def makes_texture(self, wrt: Wrt) -> bool:
        """Whether a result is a sum into texels."""
        return Content.TEXTURE in self.results(wrt)

    def textures(self, spec: ReadSpec, wrt: Wrt) -> tuple[int, ...]:
        """The positions of the arguments that hold texels, or the color outside them."""
        return tuple(k for k, a in enumerate(self.operands(spec, wrt)) if a in (Content.TEXTURE, Content.COLOR))


def of_wrt(wrt: Wrt) -> tuple[Content, ...]:
    """What the tangents, or the cotangents, of texels and operands hold."""
    return tuple(Content.TEXTURE if k == TEXELS else Content.SAMPLES for k in wrt)


READ = Layout(
    lambda spec, _: (Content.TEXTURE, Content.COLOR) if spec.has_color else (Content.TEXTURE,),
    lambda _: (Content.VALUES,),
)
SPLAT = Layout(lambda *_: (Content.VALUES,), lambda _: (Content.TEXTURE,))
PUSHFORWARD = Layout(lambda _, wrt: (*of_wrt(wrt), Content.TEXTURE), lambda _: (Content.VALUES,))
PULLBACK = Layout(lambda *_: (Content.VALUES, Content.TEXTURE), of_wrt)


# Where they lie


class Whole(NamedTuple):
    """Each texture, and the values of samples, are one whole array."""


WHOLE = Whole()


class Slice(NamedTuple):
    """Values of samples are a slice of a larger array: elements side by side of each of its rows.

    Attributes:
        shape: of the values.
        row: the elements of a row.
        start: the first one that is taken.
        count: how many are taken.
    """

    shape: tuple[int, ...]
    row: int
    start: int
    count: int

    def keeps_aligned(self, width: int) -> bool:
        """Whether rows of so many elements are aligned in the larger array, where they are in one of their own."""
        return self.row % width == 0 and self.start % width == 0


class WithHalo(NamedTuple):
    """A texture in three arrays, one after the other along the first axis.

    Attributes:
        own: the texels that a device stores.
        before, after: the halo, which neighbors sent: two arrays of one shape.
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
        """The numbers of the first element of `own`, and of `after`."""
        row = math.prod(self.own.shape[1:])
        return self.before.shape[0] * row, (self.before.shape[0] + self.own.shape[0]) * row

    def arrays(self, name: str) -> dict[str, jax.Array]:
        """The arrays, by names for a kernel that knows this one by `name`."""
        return {f"{name}_before": self.before, f"{name}_own": self.own, f"{name}_after": self.after}


class Halo(NamedTuple):
    """A texture, and its cotangent, lie in three arrays, as a `WithHalo`.

    A sample that needs texels which are not stored has no gradient.

    Attributes:
        reach: how many texels lie on each side of a device's own.
        marks_missing: whether the value of such a sample is NaN, if it is a floating number; else it is zero.
    """

    reach: int
    marks_missing: bool = False

    def divided(self, texels: jax.Array) -> WithHalo:
        """The three arrays, of all texels."""
        before, own, after = jnp.split(texels, [self.reach, texels.shape[0] - self.reach])
        return WithHalo(own, before, after)

    def missing(self, dtype: np.dtype) -> float:
        """The value of a sample that needs texels which are not stored."""
        return jnp.nan if self.marks_missing and jnp.issubdtype(dtype, jnp.floating) else 0


Storage = Whole | Slice | Halo


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


# Arguments, one for each texture, color, values or operand
View = jax.Array | WithHalo | Sliced


def views(args: Sequence[Any], contents: Sequence[Content], storage: Storage) -> list[Any]:
    """The arguments that the arrays of a primitive are, one `View` each.

    Args:
        args: arrays, or what JAX passes to rules in their place.
        contents: of the arguments before the operands of the grid.
    """
    rest = iter(args)

    def view(content: Content) -> View:
        if content is Content.TEXTURE and isinstance(storage, Halo):
            return WithHalo(next(rest), next(rest), next(rest))
        return Sliced(next(rest), storage) if content is Content.VALUES and isinstance(storage, Slice) else next(rest)

    return [*map(view, contents), *rest]


def arrays_of(view: View) -> Sequence[jax.Array]:
    """The arrays of an argument."""
    return view if isinstance(view, WithHalo) else [view.whole if isinstance(view, Sliced) else view]


def bind(p: Primitive, *args: View, storage: Storage = WHOLE, **params: Any) -> Any:
    """Binds a primitive of a read to arguments as `views` returns them."""
    return primitives.bind(p, *(a for view in args for a in arrays_of(view)), storage=storage, **params)


def where_whole(rule: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """`rule`, which takes no storage, where arrays are whole; `otherwise` elsewhere."""

    def run(*args: Any, storage: Storage = WHOLE, **params: Any) -> Any:
        return rule(*args, **params) if storage == WHOLE else otherwise(*args, storage=storage, **params)

    return run


def whole_array(view: View) -> jax.Array:
    """A copy of an argument as a whole array, if it is none."""
    if isinstance(view, WithHalo):
        return jnp.concatenate([view.before, view.own, view.after])
    if not isinstance(view, Sliced):
        return view
    _, row, start, count = view.slice
    return view.whole.reshape(-1, row)[:, start : start + count].reshape(view.shape)


def slice_of(values: Shaped | Sliced) -> Slice:
    """Where values lie: a whole array has them as rows of channels."""
    return values.slice if isinstance(values, Sliced) else Slice(values.shape, values.shape[-1], 0, values.shape[-1])


# Results side by side


class Part(NamedTuple):
    """The static half of one of several reads whose results lie side by side, or of its tangent along `wrt`."""

    spec: ReadSpec
    batch: int
    num_operands: int
    wrt: Wrt | None = None


def each_part(parts: Sequence[Part], args: Sequence[Any]) -> Iterator[tuple[Part, Sequence[Any], Any, Sequence[Any]]]:
    """Each part with its tangents, its texels and its operands."""
    rest = list(args)
    for part in parts:
        count = len(part.wrt or ())
        last = count + 1 + part.num_operands
        yield part, rest[:count], rest[count], rest[count + 1 : last]
        del rest[:last]


def slices_of(shapes: Sequence[tuple[int, ...]], row_axes: int) -> list[Slice]:
    """Where results lie in one array that holds them side by side. Their first `row_axes` axes number its rows."""
    counts = [math.prod(shape[row_axes:]) for shape in shapes]
    starts = itertools.accumulate(counts, initial=0)
    return [Slice(shape, sum(counts), start, count) for shape, start, count in zip(shapes, starts, counts)]
