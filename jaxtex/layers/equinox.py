"""The spatial transformer as an Equinox module."""

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from .._checks.calls import in_native_order, public
from ..sampler import FilterModeLike, Sampler
from ..warp.options import AddressLike, ShapeLike
from .transforms import SpatialTransform, Transform, theta_of, widened

try:
    import equinox as eqx  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as error:
    raise ImportError(
        "jaxtex.layers.equinox needs Equinox, which is not installed; run: pip install equinox."
    ) from error
from .._checks.words import listing

__all__ = ["SpatialTransformer"]
__dir__ = listing(__all__)


class SpatialTransformer(SpatialTransform, eqx.Module):
    """A spatial transformer: reads an image through a transform that a network computes from it.

    As in all of Equinox, a call takes one image, channels first; use `jax.vmap` for batches. The features of the
    localization network go through a last linear layer, `head`, which returns the parameters of the transform. The head
    starts at zero, and zero parameters give the identity. So a new layer only resizes, and weight decay pulls the
    transform towards the identity.

    A call with an image ``(C, H, W)``, or a volume ``(C, D, H, W)``, of a floating dtype returns ``(C, *output_shape)``
    of the same dtype. `localization` receives the `key` of the call, if one is passed. ``theta(image)`` returns the
    matrix, ``(2, 3)`` or ``(3, 4)``.

    Args:
        localization: a module or function, from an image ``(C, H, W)`` to features ``(num_features,)``. If all of its
            parameters have a wider dtype than the image, the image is converted to the narrowest of their dtypes.
        num_features: the number of features.
        output_shape: the spatial shape of the output, ``(H, W)``, or ``(D, H, W)`` for volumes.
        transform: the family of transforms: ``"affine"``, ``"similarity"``, ``"attention"`` or ``"translation"``, see
            `jaxtex.layers.theta_of`.
        sampler, filter_mode, address_mode: how to read, as in `jaxtex.warp.resample`; by default linear, with zero
            outside.
        border_color: the color outside under ``address_mode="border"``: a number, or one number for each channel. It is
            a constant, not a parameter.
        antialias: whether to smooth images as much as the output shrinks them, see `jaxtex.warp.resample`.

    Gradients: of any order, with respect to the image and all parameters. While `head` is zero, the gradients of
        `localization` are zero too: the first training step changes only `head`.

    Raises:
        ValueError: if the family is unknown or does not support these axes, or `filter_mode` or `address_mode`
            contradicts `sampler`.

    Example:
        >>> import equinox as eqx, jax, jax.numpy as jnp
        >>> from jaxtex.layers.equinox import SpatialTransformer
        >>> localization = eqx.nn.Sequential([
        ...     eqx.nn.Lambda(jnp.ravel), eqx.nn.Linear(16, 8, key=jax.random.key(0)), eqx.nn.Lambda(jnp.tanh)])
        >>> layer = SpatialTransformer(localization, 8, (4, 4), "attention")
        >>> images = jnp.arange(32.0).reshape(2, 1, 4, 4)
        >>> bool((jax.vmap(layer)(images) == images).all())
        True
        >>> layer = eqx.tree_at(lambda layer: layer.head.bias, layer, jnp.array([jnp.log(0.5), 0.0, 0.0]))
        >>> jax.vmap(layer)(images)[0, 0, 0]
        Array([3.75, 4.25, 4.75, 5.25], dtype=float32)
    """

    localization: Callable[..., jax.Array]
    head: eqx.nn.Linear
    output_shape: tuple[int, ...] = eqx.field(static=True)
    transform: Transform = eqx.field(static=True)
    sampler: Sampler = eqx.field(static=True)
    border_color: float | tuple[float, ...] | None = eqx.field(static=True)
    antialias: bool = eqx.field(static=True)

    @public(called="SpatialTransformer")
    def __init__(
        self,
        localization: Callable[..., jax.Array],
        num_features: int,
        output_shape: ShapeLike,
        transform: Transform = "affine",
        sampler: Sampler | None = None,
        *,
        filter_mode: FilterModeLike | None = None,
        address_mode: AddressLike | None = None,
        border_color: ArrayLike | None = None,
        antialias: bool = False,
    ):
        options = output_shape, transform, sampler, filter_mode, address_mode, border_color, antialias
        features, count = self._set_options(localization, num_features, *options)
        # The random numbers of the key are replaced by zeros.
        head = eqx.nn.Linear(features, count, key=jax.random.key(0))
        self.head = jax.tree.map(cast(Any, jnp.zeros_like), head)

    def theta(self, image: jax.Array, *, key: jax.Array | None = None) -> jax.Array:
        """Returns the matrix of the transform of an image.

        Args:
            image: ``(C, H, W)``, or a volume ``(C, D, H, W)``, as in a call of the layer.
            key: passed to `localization`.
        """
        wide = widened(image, parameters_of(self.localization))
        features = self.localization(wide) if key is None else self.localization(wide, key=key)
        # A position needs all bits of the product.
        with jax.default_matmul_precision("highest"):
            parameters = self.head(widened(features, parameters_of(self.head)))
        return theta_of(parameters, image.shape[1:], self.transform)

    def __call__(self, image: jax.Array, *, key: jax.Array | None = None) -> jax.Array:
        out = self._read(jnp.moveaxis(in_native_order(image), 0, -1), self.theta(image, key=key))
        return jnp.moveaxis(out, -1, 0)


def parameters_of(function: Callable[..., Any]) -> list[jax.Array]:
    """The floating parameters of a module; none for a plain function."""
    return jax.tree.leaves(eqx.filter(function, eqx.is_inexact_array))
