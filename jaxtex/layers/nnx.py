"""The spatial transformer as a module of Flax NNX."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from ..sampler import Sampler
from ..warp import spatial_transform
from ..warp.options import resolve_sampler
from ..warp.shapes import as_shape
from .conversions import constant_color, widened
from .thetas import num_parameters, theta_of

try:
    from flax import nnx  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as error:
    raise ImportError("jaxtex.layers.nnx needs Flax, which is not installed; run: pip install flax.") from error


class SpatialTransformer(nnx.Module):
    """A spatial transformer: reads images where a network that looks at them says.

    The network's features go through a last linear layer, `head`, to the parameters of a transform. It starts at zero,
    and zero is the identity, so that a new layer only resizes, and weight decay draws towards that.

    Args:
        localization: a module or function, from images ``(..., H, W, C)`` to ``(..., num_features)``.
        num_features: the size of the last axis of what `localization` returns.
        output_shape: the spatial shape of the output, ``(H, W)``, or ``(D, H, W)`` for volumes.
        transform: the family of transforms: ``"affine"``, ``"similarity"``, ``"attention"`` or ``"translation"``, see
            `jaxtex.layers.theta_of`.
        sampler, filter, address: how to read, by default linear, with zero outside; see `jaxtex.warp.resample`.
        border_color: what lies outside under ``address="border"``: a number, or a sequence of one for each channel. It
            is a constant, and not learned.
        antialias: whether to smooth images as far as the output shrinks them, see `jaxtex.warp.resample`.

    Calling it with images ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, of a floating dtype returns ``(...,
    *output_shape, C)`` of that dtype. ``theta(images)`` returns the matrices, ``(..., 2, 3)`` or ``(..., 3, 4)``.

    Gradients: to images and all parameters, to any order. While `head` is zero, those of `localization` are zero too:
    the first step moves `head` alone.

    Raises:
        ValueError: if the family is unknown, or has no form for these axes.

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

    def __init__(
        self,
        localization: Callable[[jax.Array], Any],
        num_features: int,
        output_shape: Sequence[int],
        transform: str = "affine",
        sampler: Sampler | None = None,
        *,
        filter: Any = None,
        address: Any = None,
        border_color: Any = None,
        antialias: bool = False,
    ):
        self.localization = localization
        self.output_shape = as_shape("SpatialTransformer", "output_shape", output_shape)
        self.transform = transform
        self.sampler = resolve_sampler("SpatialTransformer", sampler, filter, address)
        self.border_color = constant_color(border_color)
        self.antialias = bool(antialias)
        count = num_parameters("SpatialTransformer", transform, len(self.output_shape))
        # No generator is asked for anything; positions want all bits of the product.
        self.head = nnx.Linear(
            num_features, count, kernel_init=nnx.initializers.zeros, precision="highest", rngs=nnx.Rngs(0)
        )

    def theta(self, images: jax.Array) -> jax.Array:
        spatial = images.shape[-1 - len(self.output_shape) : -1]
        features = self.localization(widened(images, parameters_of(self.localization)))
        return theta_of(self.head(widened(features, parameters_of(self.head))), spatial, self.transform)

    def __call__(self, images: jax.Array) -> jax.Array:
        theta = self.theta(images)
        options = {"border_color": self.border_color, "antialias": self.antialias}
        return spatial_transform(images, theta, self.output_shape, self.sampler, **options)


def parameters_of(function: Callable[..., Any]) -> list[jax.Array]:
    """The parameters of a module; a plain function has none."""
    return jax.tree.leaves(nnx.state(function, nnx.Param)) if isinstance(function, nnx.Module) else []
