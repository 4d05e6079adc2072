"""The spatial transformer as a Flax NNX module."""

from collections.abc import Callable
from typing import Any

import jax
from jax.typing import ArrayLike

from .._checks.calls import public
from ..sampler import FilterModeLike, Sampler
from ..warp.options import AddressLike, ShapeLike
from .transforms import SpatialTransform, Transform, theta_of, widened

try:
    from flax import nnx  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as error:
    raise ImportError("jaxtex.layers.nnx needs Flax, which is not installed; run: pip install flax.") from error
from .._checks.words import listing

__all__ = ["SpatialTransformer"]
__dir__ = listing(__all__)


class SpatialTransformer(SpatialTransform, nnx.Module):
    """A spatial transformer: reads images through a transform that a network computes from them.

    The features of the localization network go through a last linear layer, `head`, which returns the parameters of the
    transform. The head starts at zero, and zero parameters give the identity. So a new layer only resizes, and weight
    decay pulls the transform towards the identity.

    A call with images ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, of a floating dtype returns ``(...,
    *output_shape, C)`` of the same dtype. ``theta(images)`` returns the matrices, ``(..., 2, 3)`` or ``(..., 3, 4)``.

    Args:
        localization: a module or function, from images ``(..., H, W, C)`` to features ``(..., num_features)``. If all
            of its parameters have a wider dtype than the images, the images are converted to the narrowest of their
            dtypes.
        num_features: the size of the last axis of the features.
        output_shape: the spatial shape of the output, ``(H, W)``, or ``(D, H, W)`` for volumes.
        transform: the family of transforms: ``"affine"``, ``"similarity"``, ``"attention"`` or ``"translation"``, see
            `jaxtex.layers.theta_of`.
        sampler, filter_mode, address_mode: how to read, as in `jaxtex.warp.resample`; by default linear, with zero
            outside.
        border_color: the color outside under ``address_mode="border"``: a number, or one number for each channel. It is
            a constant, not a parameter.
        antialias: whether to smooth images as much as the output shrinks them, see `jaxtex.warp.resample`.

    Gradients: of any order, with respect to images and all parameters. While `head` is zero, the gradients of
        `localization` are zero too: the first training step changes only `head`.

    Raises:
        ValueError: if the family is unknown or does not support these axes, or `filter_mode` or `address_mode`
            contradicts `sampler`.

    Example:
        >>> import jax.numpy as jnp
        >>> from flax import nnx
        >>> from jaxtex.layers.nnx import SpatialTransformer
        >>> flat = lambda images: images.reshape(*images.shape[:-3], -1)
        >>> localization = nnx.Sequential(flat, nnx.Linear(16, 8, rngs=nnx.Rngs(0)), nnx.tanh)
        >>> layer = SpatialTransformer(localization, 8, (4, 4), "attention")
        >>> images = jnp.arange(32.0).reshape(2, 4, 4, 1)
        >>> bool((layer(images) == images).all())
        True
        >>> layer.head.bias[...] = jnp.array([jnp.log(0.5), 0.0, 0.0])
        >>> layer(images)[0, 0, :, 0]
        Array([3.75, 4.25, 4.75, 5.25], dtype=float32)
    """

    @public(called="SpatialTransformer")
    def __init__(
        self,
        localization: Callable[[jax.Array], jax.Array],
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
        # The initializers draw no random numbers. A position needs all bits of the product.
        self.head = nnx.Linear(
            features, count, kernel_init=nnx.initializers.zeros, precision="highest", rngs=nnx.Rngs(0)
        )

    def theta(self, images: jax.Array) -> jax.Array:
        """Returns the matrices of the transforms of images.

        Args:
            images: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in a call of the layer.
        """
        features = self.localization(widened(images, parameters_of(self.localization)))
        parameters = self.head(widened(features, parameters_of(self.head)))
        return theta_of(parameters, images.shape[-1 - len(self.output_shape) : -1], self.transform)

    def __call__(self, images: jax.Array) -> jax.Array:
        return self._read(images, self.theta(images))


def parameters_of(function: Callable[..., Any]) -> list[jax.Array]:
    """The parameters of a module; none for a plain function."""
    return jax.tree.leaves(nnx.state(function, nnx.Param)) if isinstance(function, nnx.Module) else []
