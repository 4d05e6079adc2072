"""The array half of a read: texels, and the color around them."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike

from ._checks.calls import check_is_no_nest, public
from ._checks.numbers import at_full_width, in_dtype_of_jax, on_device
from ._checks.texels import as_sizes, check_knots, check_sizes
from ._checks.words import described, listing, shown
from ._engine.describe.levels import Cut, divided_levels, joined_levels
from ._jax.calls import typed_jit
from ._jax.indexing import is_sharded
from ._tables.storage_formats import STORAGE_FORMATS, is_complex, known_format
from .modes import TextureKind, choose
from .sampler import Sampler

__all__ = [
    "Texture",
    "cubemap",
    "cubemap_layered",
    "texture1d",
    "texture1d_layered",
    "texture2d",
    "texture2d_layered",
    "texture3d",
]
__dir__ = listing(__all__)

Texels = ArrayLike | Sequence[ArrayLike]  # texels, or a tuple of mip levels
Knots = Sequence[ArrayLike | None]  # of each axis, x first


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Texture:
    """Texels and their kind: what `sample`, `fetch` and `gather` read, and what `splat` returns.

    A texture is a pytree: `texels` and `border_color` are leaves, the rest is static. It can be differentiated,
    donated, stacked, scanned over and sharded like any other. A stack of textures is a `Texture` whose leaves have more
    leading axes, to be read under `jax.vmap`; its properties are those of one of its textures. Build a texture with
    `texture1d`, `texture2d`, `texture3d`, `texture1d_layered`, `texture2d_layered`, `cubemap` or `cubemap_layered`,
    which check shapes; the class itself checks nothing but `kind`.

    Attributes:
        texels: the stored texels, slowest axis first, channels last: ``(W, C)``, ``(H, W, C)``, ``(D, H, W, C)``, or
            with a leading axis of L layers; ``(6, N, N, C)`` and ``(L, 6, N, N, C)`` for cubemaps, faces in the order
            +x, -x, +y, -y, +z, -z. The dtype is float16, bfloat16, float32, float64, complex64, complex128, (u)int8,
            (u)int16, (u)int32 or bool. Filters blend bool texels as 0 and 1, in float32, and complex texels part by
            part. A mip chain is packed, ``(total, C)``, one level after the other; see `levels`.
        border_color: what taps outside the texture read under ``address_mode="border"``: a scalar or
            ``(C,)``, in units of the returned value; ``None`` is zero.
        kind: the `TextureKind`, or its name, such as ``"3d"``.
        level_shapes: the shape of each level of a mip chain, channels included; ``None`` without a chain.
        knots: the coordinates of unevenly spaced texels: a tuple with an array or ``None`` for each axis, x first; see
            `texture2d`. ``None`` if no axis has knots.
        cut: how `build_mipmaps` sharded the levels of a chain; ``None`` if it did not. A sharded chain stores the
            texels of one device after the other, ``(parts * total, C)``.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> texture = jt.texture2d(jnp.zeros((480, 640, 3)))
        >>> texture.shape, texture.num_channels, str(texture.dtype), texture.kind.value
        ((480, 640, 3), 3, 'float32', '2d')
    """

    texels: jax.Array
    border_color: jax.Array | None = None
    kind: TextureKind = dataclasses.field(default=TextureKind.TEXTURE2D, metadata={"static": True})
    level_shapes: tuple[tuple[int, ...], ...] | None = dataclasses.field(default=None, metadata={"static": True})
    cut: Cut | None = dataclasses.field(default=None, metadata={"static": True})
    knots: tuple[jax.Array | None, ...] | None = None

    def __post_init__(self):  # only the static field: jax.tree.map makes leaves of any kind
        object.__setattr__(self, "kind", choose("Texture", "kind", self.kind, TextureKind))

    @property
    def batch_ndim(self) -> int:
        """The number of leading axes along which textures are stacked; 0 for a single texture."""
        return stacked_axes("Texture: texels", self.texels, self.kind, in_chain=bool(self.level_shapes))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the finest level, channels included."""
        batch_ndim = self.batch_ndim
        return self.level_shapes[0] if self.level_shapes else self.texels.shape[batch_ndim:]

    @property
    def dtype(self) -> np.dtype:
        """The dtype in which texels are stored."""
        return self.texels.dtype

    @property
    def num_channels(self) -> int:
        """The number of channels."""
        return self.shape[-1]

    @property
    def levels(self) -> tuple[jax.Array, ...]:
        """The texels of every level of the mip chain, finest first."""
        if not self.level_shapes:
            return (self.texels,)
        if self.cut is not None:
            return joined_levels(self.texels, self.level_shapes, self.cut)
        return parted(self.texels, self.level_shapes)

    @property
    def sampler(self) -> Sampler | None:
        """The sampler that `jaxtex.unit.bind` has bound the texture with; ``None`` for a texture that is not bound."""
        return None

    @property
    def num_levels(self) -> int:
        """How many levels the mip chain has."""
        return len(self.level_shapes) if self.level_shapes else 1

    @property
    def num_layers(self) -> int | None:
        """How many layers there are, or ``None`` if the kind is not layered."""
        return self.shape[0] if self.kind.layered else None

    def __repr__(self) -> str:
        leaves = (f"{getattr(leaf, 'dtype', leaf)}{list(getattr(leaf, 'shape', ()))}" for leaf in self._leaves())
        chain = f", {self.num_levels} levels" if self.level_shapes else ""
        return f"Texture({self.kind.value!r}, {', '.join(leaves)}{chain})"

    def _leaves(self) -> tuple[Any, ...]:
        return (self.texels,) if self.border_color is None else (self.texels, self.border_color)


def build(
    kind: TextureKind, texels: Texels, border_color: ArrayLike | None, name: str, knots: Knots | None = None
) -> Texture:
    """Checks texels, border color and knots against `kind`, and makes the texture."""
    check_is_no_nest(name, "texels", texels)
    chain = isinstance(texels, tuple | list)
    named = {f"texels[{k}]": level for k, level in enumerate(texels)} if chain else {"texels": texels}
    levels = [check_level(kind, level, name, argument) for argument, level in named.items()]
    if not levels:
        raise ValueError(f"{name}: texels is empty, expected at least one level.")
    check_chain(kind, levels, name)
    if border_color is not None:
        exact = jnp.issubdtype(levels[0].dtype, jnp.integer)
        border_color = on_device(at_full_width(name, "border_color", border_color, exact=exact))
        check_color(name, border_color, levels[0].shape[-1], stored=levels[0].dtype)
    texture = packed(kind, levels, border_color)
    if knots is None:
        return texture
    if texture.level_shapes:
        raise ValueError(
            f"{name}: knots are given for a mip chain of {len(levels)} levels, expected one level; leave them out."
        )
    checked = check_knots(name, knots, texture.shape[-1 - kind.texel_ndim : -1][::-1])
    return dataclasses.replace(texture, knots=checked)


def packed(kind: TextureKind, levels: Sequence[jax.Array], border_color: jax.Array | None) -> Texture:
    """A texture of `levels`, finest first."""
    if len(levels) == 1:
        return Texture(levels[0], border_color, kind)
    return Texture(concatenated(tuple(levels)), border_color, kind, tuple(level.shape for level in levels))


@typed_jit()
def concatenated(levels: tuple[jax.Array, ...]) -> jax.Array:
    """The texels of levels as the rows of one array."""
    return jnp.concatenate([level.reshape(math.prod(level.shape[:-1]), level.shape[-1]) for level in levels])


@typed_jit("shapes")
def parted(texels: jax.Array, shapes: tuple[tuple[int, ...], ...]) -> tuple[jax.Array, ...]:
    """The levels of these shapes whose texels are the rows of one array, or of a stack of them."""
    parts = jnp.split(texels, np.cumsum([math.prod(shape[:-1]) for shape in shapes])[:-1], axis=-2)
    return tuple(part.reshape(*part.shape[:-2], *shape) for part, shape in zip(parts, shapes))


def without_cut(texture: Texture) -> Texture:
    """The texture with whole levels, one after the other, not partitioned over devices."""
    if texture.cut is None:
        return texture
    levels: Sequence[jax.Array] = joined_levels(texture.texels, texture.level_shapes or (), texture.cut)
    if is_sharded(texture.texels):
        whole = NamedSharding(jax.typeof(texture.texels).sharding.mesh, PartitionSpec())
        levels = [jax.reshard(level, whole) for level in levels]
    return packed(texture.kind, levels, texture.border_color)


def with_cut(texture: Texture, like: Texture) -> Texture:
    """The texture with its levels partitioned over devices as the levels of `like` are."""
    if like.cut is None:
        return texture
    texels = divided_levels(texture.levels, like.cut)
    if is_sharded(like.texels):
        texels = jax.reshard(texels, jax.typeof(like.texels).sharding)
    return dataclasses.replace(texture, texels=texels, cut=like.cut)


@public
def texture1d(texels: Texels, *, border_color: ArrayLike | None = None, knots: Knots | None = None) -> Texture:
    """A 1D texture, read at ``(x,)``.

    Args:
        texels: ``(W, C)``, of one of the dtypes that `Texture` lists; or a tuple of mip levels, finest first,
            of sizes ``max(1, n >> level)``.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.
        knots: where texels lie along x, as in `texture2d`; ``None`` if they are evenly spaced.

    Returns:
        A `Texture` that holds `texels` as they are. Nothing is converted, and only a mip chain is copied.

    Gradients: a read is differentiable with respect to floating `texels`, to `border_color`, and to `knots`.

    Raises:
        ValueError: if a shape or dtype is not one of those above, or if known knots have no order.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.sample(jt.texture1d(jnp.array([[10.0], [20.0]])), (0.5,))
        Array([15.], dtype=float32)
    """
    return build(TextureKind.TEXTURE1D, texels, border_color, "texture1d", knots)


@public
def texture2d(texels: Texels, *, border_color: ArrayLike | None = None, knots: Knots | None = None) -> Texture:
    """A 2D texture, an image, read at ``(x, y)``: x along the width, y along the height.

    Args:
        texels: ``(H, W, C)``, of one of the dtypes that `Texture` lists; or a tuple of mip levels, finest first, of
            sizes ``max(1, n >> level)``.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.
        knots: the coordinates of texels, a tuple ``(x, y)`` with an array for each axis, or ``None`` where texels are
            evenly spaced. Reads take coordinates in the same unit. An array is ``(N,)``, one knot for each texel, or
            ``(N + 2,)`` with the two edges of the axis around them; by default, edges lie half a cell beyond the outer
            knots. Knots are finite and increase or decrease; two equal ones are a jump, for the point and the linear
            filter. The constructor checks knots whose values are known, and copies them from their device for that.
            Under wrap the texture repeats after the length from edge to edge; under sphere the edges of y are the
            poles.

    Returns:
        A `Texture` that holds `texels` as they are. Nothing is converted, and only a mip chain is copied.

    Gradients: a read is differentiable with respect to floating `texels`, to `border_color`, and to `knots`.

    Raises:
        ValueError: if a shape or dtype is not one of those above, or if known knots have no order.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.array([[[0.0], [1.0]], [[2.0], [3.0]]])
        >>> jt.sample(jt.texture2d(image), (0.5, 0.25))
        Array([0.5], dtype=float32)
    """
    return build(TextureKind.TEXTURE2D, texels, border_color, "texture2d", knots)


@public
def texture3d(texels: Texels, *, border_color: ArrayLike | None = None, knots: Knots | None = None) -> Texture:
    """A 3D texture, a volume, read at ``(x, y, z)``.

    Args:
        texels: ``(D, H, W, C)``, of one of the dtypes that `Texture` lists; or a tuple of mip levels, finest first, of
            sizes ``max(1, n >> level)``.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.
        knots: where texels lie along x, y, z, as in `texture2d`; ``None`` if they are evenly spaced.

    Returns:
        A `Texture` that holds `texels` as they are. Nothing is converted, and only a mip chain is copied.

    Gradients: a read is differentiable with respect to floating `texels`, to `border_color`, and to `knots`.

    Raises:
        ValueError: if a shape or dtype is not one of those above, or if known knots have no order.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> volume = jnp.arange(8.0).reshape(2, 2, 2, 1)
        >>> jt.sample(jt.texture3d(volume), (0.5, 0.5, 0.5))
        Array([3.5], dtype=float32)
    """
    return build(TextureKind.TEXTURE3D, texels, border_color, "texture3d", knots)


@public
def texture1d_layered(texels: Texels, *, border_color: ArrayLike | None = None, knots: Knots | None = None) -> Texture:
    """A stack of 1D textures of one size, read at ``(x,)`` and an integer ``layer``; layers never mix.

    Args:
        texels: ``(L, W, C)``, of one of the dtypes that `Texture` lists; or a tuple of mip levels, finest first, of
            sizes ``max(1, n >> level)``; layers keep their number.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.
        knots: where texels lie along x, as in `texture2d`; ``None`` if they are evenly spaced.

    Returns:
        A `Texture` that holds `texels` as they are. Nothing is converted, and only a mip chain is copied.

    Gradients: a read is differentiable with respect to floating `texels`, to `border_color`, and to `knots`.

    Raises:
        ValueError: if a shape or dtype is not one of those above, or if known knots have no order.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> stack = jt.texture1d_layered(jnp.array([[[1.0], [2.0]], [[3.0], [4.0]]]))
        >>> jt.sample(stack, (0.5,), layer=1)
        Array([3.5], dtype=float32)
    """
    return build(TextureKind.TEXTURE1D_LAYERED, texels, border_color, "texture1d_layered", knots)


@public
def texture2d_layered(texels: Texels, *, border_color: ArrayLike | None = None, knots: Knots | None = None) -> Texture:
    """A stack of 2D textures of one size, read at ``(x, y)`` and an integer ``layer``; layers never mix.

    Args:
        texels: ``(L, H, W, C)``, of one of the dtypes that `Texture` lists; or a tuple of mip levels, finest first, of
            sizes ``max(1, n >> level)``; layers keep their number.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.
        knots: where texels lie along x, y, as in `texture2d`; ``None`` if they are evenly spaced.

    Returns:
        A `Texture` that holds `texels` as they are. Nothing is converted, and only a mip chain is copied.

    Gradients: a read is differentiable with respect to floating `texels`, to `border_color`, and to `knots`.

    Raises:
        ValueError: if a shape or dtype is not one of those above, or if known knots have no order.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> stack = jt.texture2d_layered(jnp.arange(8.0).reshape(2, 2, 2, 1))
        >>> jt.sample(stack, (0.5, 0.5), layer=jnp.array([0, 1]))
        Array([[1.5],
               [5.5]], dtype=float32)
    """
    return build(TextureKind.TEXTURE2D_LAYERED, texels, border_color, "texture2d_layered", knots)


@public
def cubemap(texels: Texels, *, border_color: ArrayLike | None = None) -> Texture:
    """A cubemap, six square faces around the origin, read at a direction ``(x, y, z)`` of any length.

    Args:
        texels: ``(6, N, N, C)``, faces in the order +x, -x, +y, -y, +z, -z, of one of the dtypes that `Texture`
            lists; or a tuple of mip levels, finest first, of sizes ``max(1, N >> level)``. Seen from the origin, with
            s to the right and t down a face, the direction of (s, t) in [-1, 1] is (1, -t, -s), (-1, -t, s),
            (s, 1, t), (s, -1, -t), (s, -t, 1), (-s, -t, -1).
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside a face where seams are not
            filtered across (``Sampler(seamless_cubemap=False)``); ``None`` is zero.

    Returns:
        A `Texture` that holds `texels` as they are. Nothing is converted, and only a mip chain is copied.

    Gradients: a read is differentiable with respect to floating `texels` and to `border_color`.

    Raises:
        ValueError: if a shape or dtype is not one of those above.

    Source: CUDA C++ Programming Guide, "Cubemap Textures".

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> faces = jnp.broadcast_to(jnp.arange(6.0)[:, None, None, None], (6, 4, 4, 1))
        >>> jt.sample(jt.cubemap(faces), (jnp.array([1.0, 0.0]), 0.0, jnp.array([0.0, -3.0])))
        Array([[0.],
               [5.]], dtype=float32)
    """
    return build(TextureKind.CUBEMAP, texels, border_color, "cubemap")


@public
def cubemap_layered(texels: Texels, *, border_color: ArrayLike | None = None) -> Texture:
    """A stack of cubemaps of one size, read at a direction ``(x, y, z)`` and an integer ``layer``.

    Args:
        texels: ``(L, 6, N, N, C)``, faces as in `cubemap`, of one of the dtypes that `Texture` lists; or a tuple of
            mip levels, finest first, of sizes ``max(1, N >> level)``; layers keep their number.
        border_color: as in `cubemap`.

    Returns:
        A `Texture` that holds `texels` as they are. Nothing is converted, and only a mip chain is copied.

    Gradients: a read is differentiable with respect to floating `texels` and to `border_color`.

    Raises:
        ValueError: if a shape or dtype is not one of those above.

    Source: CUDA C++ Programming Guide, "Cubemap Layered Textures".

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> faces = jnp.broadcast_to(jnp.arange(12.0).reshape(2, 6, 1, 1, 1), (2, 6, 4, 4, 1))
        >>> jt.sample(jt.cubemap_layered(faces), (0.0, 1.0, 0.0), layer=1)
        Array([8.], dtype=float32)
    """
    return build(TextureKind.CUBEMAP_LAYERED, texels, border_color, "cubemap_layered")


# Checks of texels: shapes and dtypes that fit a kind, and the sizes of the levels of a mip chain


AXIS_NAMES = {
    TextureKind.TEXTURE1D: ("W",),
    TextureKind.TEXTURE2D: ("H", "W"),
    TextureKind.TEXTURE3D: ("D", "H", "W"),
    TextureKind.TEXTURE1D_LAYERED: ("L", "W"),
    TextureKind.TEXTURE2D_LAYERED: ("L", "H", "W"),
    TextureKind.CUBEMAP: ("6", "N", "N"),
    TextureKind.CUBEMAP_LAYERED: ("L", "6", "N", "N"),
}
# The levels of a mip chain lie under one int32 index.
CHAIN_LIMIT = 2**31


def check_level(kind: TextureKind, texels: Any, name: str, argument: str) -> jax.Array:
    """The texels of one level."""
    expected = f"({', '.join((*AXIS_NAMES[kind], 'C'))})"
    texels = in_dtype_of_jax(name, argument, texels)
    try:
        texels = on_device(texels)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: {argument} is {described(texels)}, expected numbers {expected}.") from None
    if texels.ndim != len(AXIS_NAMES[kind]) + 1:
        missing = texels.ndim == len(AXIS_NAMES[kind])
        remedy = f"{argument}[..., None] adds a channel axis" if missing else "stack textures under jax.vmap"
        if missing and argument != "texels" and AXIS_NAMES[kind][0] in ("6", "L", "D"):  # faces, layers or slices
            remedy = "a list or tuple holds mip levels, and jnp.stack(texels) makes one array"
        raise ValueError(f"{name}: {argument} has shape {texels.shape}, expected {expected}; {remedy}.")
    if 0 in texels.shape[:-1]:
        raise ValueError(f"{name}: {argument} has shape {texels.shape}, expected at least one texel.")
    check_sizes(f"{name}: {argument} has shape {texels.shape}", texels.shape[int(kind.layered) :])
    check_faces(kind, texels.shape, name, argument)
    check_stored(f"{name}: {argument}", texels.dtype)
    return texels


def check_stored(came: str, dtype: np.dtype[Any]) -> None:
    """Checks that textures have a dtype; `came` begins the error message."""
    if known_format(dtype) is None:
        raise ValueError(f"{came} has dtype {dtype}, expected one of {', '.join(STORAGE_FORMATS)}; use astype.")


def stacked_axes(came: str, texels: object, kind: TextureKind, *, in_chain: bool) -> int:
    """The number of leading axes along which textures are stacked; `came` begins the error message.

    Args:
        in_chain: whether the levels of a mip chain lie one after the other.
    """
    shape: Any = getattr(texels, "shape", None)
    own = 2 if in_chain else len(AXIS_NAMES[kind]) + 1
    if not isinstance(shape, tuple) or len(shape) < own:  # pyright: ignore[reportUnknownArgumentType]
        raise ValueError(
            f"{came} is {shown(texels)}, expected at least {own} axes for kind {kind.value!r}; make textures with "
            f"jaxtex.texture2d(array) or another constructor."
        )
    return len(shape) - own  # pyright: ignore[reportUnknownArgumentType]


def check_shape(name: str, kind: TextureKind, shape: Any, *channels: str) -> tuple[int, ...]:
    """The shape of the texels of a kind, with a last axis of channels if it is named."""
    expected = (*AXIS_NAMES[kind], *channels)
    sizes, count = as_sizes(name, "shape", shape, expected), len(AXIS_NAMES[kind])
    if len(sizes) != len(expected) or min(sizes[:count]) < 1 or min(sizes) < 0:
        raise ValueError(
            f"{name}: shape is {sizes}, expected ({', '.join(expected)}) for kind {kind.value!r}; for another kind, "
            f"pass kind."
        )
    check_faces(kind, sizes if channels else (*sizes, 1), name, "shape")
    return sizes


def check_faces(kind: TextureKind, shape: tuple[int, ...], name: str, argument: str) -> None:
    """Checks that a cubemap has six square faces."""
    if kind.is_cube and (shape[-4] != 6 or shape[-3] != shape[-2]):
        expected = ", ".join((*AXIS_NAMES[kind], "C"))
        raise ValueError(f"{name}: {argument} has shape {shape}, expected ({expected}), six square faces.")


def check_chain(kind: TextureKind, levels: Sequence[jax.Array], name: str) -> None:
    """Checks that each level is half the one before, rounded down and at least 1."""
    for k, (level, shape) in enumerate(zip(levels, chain_shapes(kind, levels[0].shape, len(levels), name))):
        if level.shape != shape or level.dtype != levels[0].dtype:
            raise ValueError(
                f"{name}: level {k} has shape {level.shape} and dtype {level.dtype}, expected {shape} and "
                f"{levels[0].dtype}: sizes are max(1, n >> level) of the first; build_mipmaps makes such levels."
            )
    if len(levels) > 1:
        check_sizes(f"{name}: texels has levels of shape {levels[0].shape}", levels[0].shape)
    if len(levels) > 1 and sum(math.prod(level.shape[:-1]) for level in levels) >= CHAIN_LIMIT:
        raise ValueError(f"{name}: texels has 2^31 texels or more, too many for a mip chain; use fewer levels.")


def chain_shapes(
    kind: TextureKind, shape: tuple[int, ...], num_levels: int | None, name: str, argument: str = "texels"
) -> list[tuple[int, ...]]:
    """The shapes of the levels of a mip chain; of all possible levels if `num_levels` is None."""
    front, sizes = shape[: -1 - kind.texel_ndim], shape[-1 - kind.texel_ndim : -1]
    most = max(sizes).bit_length()
    if num_levels is not None and not 1 <= num_levels <= most:
        raise ValueError(
            f"{name}: {argument} asks for {num_levels} levels, expected 1 to {most} for texels of shape {shape}."
        )
    return [(*front, *(max(n >> level, 1) for n in sizes), shape[-1]) for level in range(num_levels or most)]


def check_color(
    name: str, color: jax.Array, channels: int, argument: str = "border_color", stored: np.dtype[Any] | None = None
) -> None:
    """Checks a border color: one number, or one for each channel; complex only for complex texels."""
    if stored is not None and is_complex(color.dtype) and not is_complex(stored):
        raise TypeError(
            f"{name}: {argument} is complex, and texels are {stored}; pass a real {argument}, or complex texels."
        )
    if color.shape not in ((), (channels,)):
        remedy = ""
        if color.ndim > 1 and color.shape[-1] in (1, channels):
            remedy = "; for a color for each image, map over images and colors by jax.vmap"
        raise ValueError(
            f"{name}: {argument} has shape {color.shape}, expected a scalar or ({channels},), one value for each "
            f"channel{remedy}."
        )
