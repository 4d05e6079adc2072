"""Textures that are bound to the texture unit of a GPU, and their reads."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.arithmetic import FLOAT, ReadArithmetic
from .._engine.describe.plan import Layout, ReadArguments
from .._engine.describe.unit import UnitRead
from .._engine.rules.unit import unit_read
from .._hardware import HARDWARE
from .._hardware.read import result_dtype
from .._jax.calls import typed_jit
from .._jax.primitives import straight_through
from .._tables.storage_formats import is_blended, rounded_dtype
from .._unit.objects import destroy, note
from ..sampler import Sampler
from ..texture import Texture
from . import calls


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class UnitTexture(Texture):
    """A texture that `jaxtex.unit.bind` has bound to the texture unit of a GPU, with a sampler.

    Reads with that sampler, or without one, are the unit's: `sample` and `gather`, and what calls them. All else reads
    the texels that are kept. It is a pytree, whose handle is a leaf. The texture object lives as long as an array that
    holds the handle; as a context manager, the texture destroys it at the end of the block.

    Attributes:
        handle: three numbers that name the texture object; zeros where there is no texture unit.
        sampler: the sampler that the texture is bound with.
        stored: the shape of the finest level, and the dtype of the texels.
    """

    handle: jax.Array = dataclasses.field(kw_only=True)
    sampler: Sampler = dataclasses.field(default=Sampler(), kw_only=True, metadata={"static": True})
    stored: tuple[tuple[int, ...], Any] = dataclasses.field(kw_only=True, metadata={"static": True})

    def __post_init__(self):
        super().__post_init__()
        note(self.handle)

    @property
    def batch_ndim(self) -> int:
        texels: Any = self.texels
        return 0 if texels is None else super().batch_ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stored[0]

    @property
    def dtype(self) -> np.dtype:
        return self.stored[1]

    def __reduce__(self):
        raise TypeError(
            "jaxtex.unit: a bound texture is copied or pickled, but its texture object is of this process alone; copy "
            "the texture that was bound, and bind the copy."
        )

    def __enter__(self) -> "UnitTexture":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def destroy(self) -> None:
        """Destroys the texture object, after the programs that use it. It is destroyed anyway when nobody holds it."""
        destroy(self.handle)

    @property
    def bound(self) -> Texture:
        """The texture that was bound."""
        return Texture(self.texels, self.border_color, self.kind, self.level_shapes)


class Emulation(NamedTuple):
    """The meaning of a read of a texture unit: the same read of the kept texels.

    Attributes:
        tree: the structure of the arguments and of the texture.
        run: the read, a function of an arithmetic, a texture and arguments.
    """

    tree: Any
    run: Callable[..., jax.Array]

    def __call__(self, *operands: jax.Array) -> jax.Array:
        arguments, texture = jax.tree.unflatten(self.tree, operands)
        return self.run(HARDWARE, with_texels(texture), arguments)


def with_texels(texture: Texture) -> Texture:
    """The texture, if its texels are kept."""
    texels: Any = texture.texels
    if texels is None:
        raise ValueError(
            "jaxtex.unit: the texture was bound with keep_texels=False, and this program reads its texels: it runs on "
            "a device without a texture unit, computes a derivative, or reads in another way than by the sampler that "
            "the texture is bound with. Bind it with keep_texels=True."
        )
    return texture


@typed_jit("dtype")
def sample(texture: UnitTexture, arguments: ReadArguments, *, dtype: np.dtype) -> jax.Array:
    """`calls.sample` by the sampler that the texture is bound with, S + (C,) of `dtype`."""
    # The dtype of the result, as in `calls.sample`.
    sampler, arguments = texture.sampler, arguments.as_operands()
    blends = is_blended(texture.dtype) and calls.blends(texture, sampler)
    sums, differentiable = calls.numbers_of(texture, sampler.decoding, arguments.coords, blends=blends)
    if not differentiable:
        arguments = jax.lax.stop_gradient(arguments)
    run = functools.partial(one_read, sampler=sampler)
    return by_unit(texture, arguments, run, dtype=rounded_dtype(dtype, sums)).astype(dtype)


@typed_jit("component", "dtype")
def gather(texture: UnitTexture, arguments: ReadArguments, *, component: int, dtype: np.dtype) -> jax.Array:
    """`calls.gather` by the sampler that the texture is bound with, S + (4,) of `dtype`."""
    sampler, arguments = texture.sampler, jax.lax.stop_gradient(arguments.as_operands())
    sums, _ = calls.numbers_of(texture, sampler.decoding, arguments.coords, blends=False)
    run = functools.partial(calls.four_texels, sampler=sampler, component=component)
    return by_unit(texture, arguments, run, component, dtype=rounded_dtype(dtype, sums)).astype(dtype)


def one_read(
    arithmetic: ReadArithmetic, texture: Texture, arguments: ReadArguments, *, sampler: Sampler, dtype: np.dtype
) -> jax.Array:
    read = calls.plan_of_call(arithmetic, Layout.of(texture), arguments, sampler, dtype)
    out = arithmetic.read(texture, read)
    return jnp.broadcast_to(out, (*arguments.shape, texture.num_channels))


def by_unit(
    texture: UnitTexture,
    arguments: ReadArguments,
    run: Callable[..., jax.Array],
    component: int | None = None,
    *,
    dtype: np.dtype,
) -> jax.Array:
    """The values that the unit returns, with the derivatives of the float read of the kept texels.

    Args:
        run: the read of a texture with texels, in an arithmetic.
        component: of a gather.
    """
    returned = result_dtype(texture.dtype, texture.sampler.decoding)

    # The value: what the unit returns, by its own read.
    def value(texture: UnitTexture, arguments: ReadArguments) -> jax.Array:
        numbers, level = jax.tree.map(as_single, arguments), level_of(texture, arguments)
        if level == "level zero":
            # What chooses among levels has no effect, but for its shape.
            numbers = numbers._replace(lod=None, ddx=None, ddy=None)
            if numbers.shape != arguments.shape:
                first, *others = numbers.coords
                numbers = numbers._replace(coords=(jnp.broadcast_to(first, arguments.shape), *others))
        # The emulation of the unit takes the same operands, where a program has no unit.
        operands, tree = jax.tree.flatten((numbers, texture.bound))
        read = UnitRead(
            kind=texture.kind,
            level=level,
            component=component,
            dtype=returned,
            num_channels=texture.num_channels if component is None else 4,
            num_numbers=len(jax.tree.leaves(numbers)),
            meaning=Emulation(tree, functools.partial(run, dtype=returned)),
        )
        return unit_read(texture.handle, *operands, read=read).astype(dtype)

    # The derivatives: those of the float read.
    def meaning(texture: UnitTexture, arguments: ReadArguments) -> jax.Array:
        return run(FLOAT, with_texels(texture.bound), arguments, dtype=dtype)

    return straight_through(value, meaning, texture, arguments)


def as_single(a: jax.Array) -> jax.Array:
    return a if jnp.issubdtype(a.dtype, jnp.integer) else a.astype(jnp.float32)


def level_of(texture: UnitTexture, arguments: ReadArguments) -> str:
    """How the mip level is given; see `UnitRead`."""
    if arguments.ddx is not None and (texture.sampler.max_anisotropy > 1 or texture.num_levels > 1):
        return "grad"
    if texture.num_levels == 1:
        return "level zero"
    return "level" if arguments.lod is not None else ""
