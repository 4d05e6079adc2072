"""The array half of a read: texels, and the colour around them."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from .modes import TextureKind

STORAGE_DTYPES = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
)
AXIS_NAMES = {
    TextureKind.TEXTURE1D: ("W",),
    TextureKind.TEXTURE2D: ("H", "W"),
    TextureKind.TEXTURE3D: ("D", "H", "W"),
    TextureKind.TEXTURE1D_LAYERED: ("L", "W"),
    TextureKind.TEXTURE2D_LAYERED: ("L", "H", "W"),
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Texture:
    """Texels with a kind: what `sample`, `fetch` and `gather` read, and what `splat` returns.

    A texture is a pytree: `texels` and `border_color` are leaves, `kind` is static. It can be differentiated,
    donated, stacked, scanned over and sharded like any other; a stack of textures is a `Texture` whose leaves
    have one more leading axis, to be read under `jax.vmap`. Build one with `texture1d`, `texture2d`,
    `texture3d`, `texture1d_layered` or `texture2d_layered`, which check shapes; the class itself checks
    nothing.

    Attributes:
        texels: the stored texels, slowest axis first, channels last: ``(W, C)``, ``(H, W, C)``,
            ``(D, H, W, C)``, or with a leading axis of L layers. Any of float16, bfloat16, float32, float64, (u)int8,
            (u)int16, (u)int32.
        border_color: what taps outside the texture read under ``address_mode="border"``: a scalar or
            ``(C,)``, in units of the returned value; ``None`` is zero.
        kind: the `TextureKind`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> texture = jt.texture2d(jnp.zeros((480, 640, 3)))
        >>> texture.shape, texture.channels, str(texture.dtype), texture.kind.value
        ((480, 640, 3), 3, 'float32', '2d')
    """

    texels: jax.Array
    border_color: jax.Array | None = None
    kind: TextureKind = dataclasses.field(default=TextureKind.TEXTURE2D, metadata={"static": True})

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the finest level, channels included."""
        return self.texels.shape

    @property
    def dtype(self) -> Any:
        """The dtype in which texels are stored."""
        return self.texels.dtype

    @property
    def channels(self) -> int:
        """The number of channels."""
        return self.texels.shape[-1]

    @property
    def levels(self) -> tuple[jax.Array, ...]:
        """The texels of every level of the mip chain, finest first."""
        return (self.texels,)

    @property
    def num_levels(self) -> int:
        """How many levels the mip chain has."""
        return len(self.levels)

    @property
    def num_layers(self) -> int | None:
        """How many layers there are, or ``None`` if the kind is not layered."""
        return self.texels.shape[0] if self.kind.layered else None

    def __repr__(self) -> str:
        leaves = (f"{getattr(leaf, 'dtype', leaf)}{list(getattr(leaf, 'shape', ()))}" for leaf in self._leaves())
        return f"Texture({self.kind.value!r}, {', '.join(leaves)})"

    def _leaves(self) -> tuple[Any, ...]:
        return (self.texels,) if self.border_color is None else (self.texels, self.border_color)


def build(kind: TextureKind, texels: Any, border_color: Any, name: str) -> Texture:
    """Checks texels and border colour against `kind`, and makes the texture."""
    expected = f"({', '.join((*AXIS_NAMES[kind], 'C'))})"
    if isinstance(texels, tuple | list):
        raise ValueError(
            f"{name}: texels is a {type(texels).__name__}, expected one array {expected}; a chain of mip levels "
            f"is not supported so far, so pass the finest level alone, or convert it with jnp.asarray."
        )
    texels = jnp.asarray(texels)
    if texels.ndim != len(AXIS_NAMES[kind]) + 1:
        missing = texels.ndim == len(AXIS_NAMES[kind])
        remedy = "texels[..., None] adds a channel axis" if missing else "stack textures under jax.vmap"
        raise ValueError(f"{name}: texels has shape {texels.shape}, expected {expected}; {remedy}.")
    if 0 in texels.shape:
        raise ValueError(f"{name}: texels has shape {texels.shape}, expected at least one texel and channel.")
    if texels.dtype.name not in STORAGE_DTYPES:
        raise ValueError(
            f"{name}: texels has dtype {texels.dtype}, expected one of {', '.join(STORAGE_DTYPES)}; "
            f"convert it with texels.astype."
        )
    if border_color is not None:
        border_color = jnp.asarray(border_color)
        if border_color.shape not in ((), (texels.shape[-1],)):
            raise ValueError(
                f"{name}: border_color has shape {border_color.shape}, expected a scalar or "
                f"({texels.shape[-1]},), one value a channel."
            )
    return Texture(texels, border_color, kind)


def texture1d(texels: Any, *, border_color: Any = None) -> Texture:
    """A 1D texture, read at ``(x,)``.

    Args:
        texels: ``(W, C)``, of one of the dtypes that `Texture` lists.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.

    Returns:
        A `Texture` that holds `texels` as they are: nothing is copied or converted.

    Gradients: of a read flow to `texels` if they are floating, and to `border_color`.

    Raises:
        ValueError: if a shape or dtype is not one of those above.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.sample(jt.texture1d(jnp.array([[10.0], [20.0]])), (0.5,))
        Array([15.], dtype=float32)
    """
    return build(TextureKind.TEXTURE1D, texels, border_color, "texture1d")


def texture2d(texels: Any, *, border_color: Any = None) -> Texture:
    """A 2D texture, an image, read at ``(x, y)``: x along the width, y along the height.

    Args:
        texels: ``(H, W, C)``, of one of the dtypes that `Texture` lists.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.

    Returns:
        A `Texture` that holds `texels` as they are: nothing is copied or converted.

    Gradients: of a read flow to `texels` if they are floating, and to `border_color`.

    Raises:
        ValueError: if a shape or dtype is not one of those above.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.array([[[0.0], [1.0]], [[2.0], [3.0]]])
        >>> jt.sample(jt.texture2d(image), (0.5, 0.25))
        Array([0.5], dtype=float32)
    """
    return build(TextureKind.TEXTURE2D, texels, border_color, "texture2d")


def texture3d(texels: Any, *, border_color: Any = None) -> Texture:
    """A 3D texture, a volume, read at ``(x, y, z)``.

    Args:
        texels: ``(D, H, W, C)``, of one of the dtypes that `Texture` lists.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.

    Returns:
        A `Texture` that holds `texels` as they are: nothing is copied or converted.

    Gradients: of a read flow to `texels` if they are floating, and to `border_color`.

    Raises:
        ValueError: if a shape or dtype is not one of those above.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> volume = jnp.arange(8.0).reshape(2, 2, 2, 1)
        >>> jt.sample(jt.texture3d(volume), (0.5, 0.5, 0.5))
        Array([3.5], dtype=float32)
    """
    return build(TextureKind.TEXTURE3D, texels, border_color, "texture3d")


def texture1d_layered(texels: Any, *, border_color: Any = None) -> Texture:
    """A stack of 1D textures of one size, read at ``(x,)`` and an integer ``layer``; layers never mix.

    Args:
        texels: ``(L, W, C)``, of one of the dtypes that `Texture` lists.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.

    Returns:
        A `Texture` that holds `texels` as they are: nothing is copied or converted.

    Gradients: of a read flow to `texels` if they are floating, and to `border_color`.

    Raises:
        ValueError: if a shape or dtype is not one of those above.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> stack = jt.texture1d_layered(jnp.array([[[1.0], [2.0]], [[3.0], [4.0]]]))
        >>> jt.sample(stack, (0.5,), layer=1)
        Array([3.5], dtype=float32)
    """
    return build(TextureKind.TEXTURE1D_LAYERED, texels, border_color, "texture1d_layered")


def texture2d_layered(texels: Any, *, border_color: Any = None) -> Texture:
    """A stack of 2D textures of one size, read at ``(x, y)`` and an integer ``layer``; layers never mix.

    Args:
        texels: ``(L, H, W, C)``, of one of the dtypes that `Texture` lists.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.

    Returns:
        A `Texture` that holds `texels` as they are: nothing is copied or converted.

    Gradients: of a read flow to `texels` if they are floating, and to `border_color`.

    Raises:
        ValueError: if a shape or dtype is not one of those above.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> stack = jt.texture2d_layered(jnp.arange(8.0).reshape(2, 2, 2, 1))
        >>> jt.sample(stack, (0.5, 0.5), layer=jnp.array([0, 1]))
        Array([[1.5],
               [5.5]], dtype=float32)
    """
    return build(TextureKind.TEXTURE2D_LAYERED, texels, border_color, "texture2d_layered")
