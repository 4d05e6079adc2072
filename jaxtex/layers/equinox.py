"""The spatial transformer as a module of Equinox."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..sampler import Sampler
from ..warp import spatial_transform
from ..warp.options import resolve_sampler
from ..warp.shapes import as_shape
from .conversions import constant_color, widened
from .thetas import num_parameters, theta_of

try:
    import equinox as eqx  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as error:
    raise ImportError(
        "jaxtex.layers.equinox needs Equinox, which is not installed; run: pip install equinox."
    ) from error


class SpatialTransformer(eqx.Module):
    """A spatial transformer: reads an image where a network that looks at it says.

    As in all of Equinox a call is for one image, channels first; batches go through `jax.vmap`. The network's features
    go through a last linear layer, `head`, to the parameters of a transform. It starts at zero, and zero is the
    identity, so that a new layer only resizes, and weight decay draws towards that.

    Args:
        localization: a module or function, from an image ``(C, H, W)`` to ``(num_features,)``.
        num_features: the size of what `localization` returns.
        output_shape: the spatial shape of the output, ``(H, W)``, or ``(D, H, W)`` for volumes.
        transform: the family of transforms: ``"affine"``, ``"similarity"``, ``"attention"`` or ``"translation"``, see
            `jaxtex.layers.theta_of`.
        sampler, filter, address: how to read, by default linear, with zero outside; see `jaxtex.warp.resample`.
        border_color: what lies outside under ``address="border"``: a number, or a sequence of one for each channel. It
            is a constant, and not learned.
        antialias: whether to smooth images as far as the output shrinks them, see `jaxtex.warp.resample`.

    Calling it with an image ``(C, H, W)``, or a volume ``(C, D, H, W)``, of a floating dtype returns ``(C,
    *output_shape)`` of that dtype; a `key` is handed to `localization`. ``theta(image)`` returns the matrix, ``(2, 3)``
    or ``(3, 4)``.

    Gradients: to the image and all parameters, to any order. While `head` is zero, those of `localization` are zero
    too: the first step moves `head` alone.

    Raises:
        ValueError: if the family is unknown, or has no form for these axes.

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

    localization: Callable[..., Any]
    head: eqx.nn.Linear
    output_shape: tuple[int, ...] = eqx.field(static=True)
    transform: str = eqx.field(static=True)
    sampler: Sampler = eqx.field(static=True)
    border_color: float | tuple[float, ...] | None = eqx.field(static=True)
    antialias: bool = eqx.field(static=True)

    def __init__(
        self,
        localization: Callable[..., Any],
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
        # What the key makes is not kept.
        self.head = jax.tree.map(jnp.zeros_like, eqx.nn.Linear(num_features, count, key=jax.random.key(0)))

    def theta(self, image: jax.Array, *, key: jax.Array | None = None) -> jax.Array:
        seen = widened(image, parameters_of(self.localization))
        features = self.localization(seen) if key is None else self.localization(seen, key=key)
        # Positions want all bits of the product.
        with jax.default_matmul_precision("highest"):
            parameters = self.head(widened(features, parameters_of(self.head)))
        return theta_of(parameters, image.shape[1:], self.transform)

    def __call__(self, image: jax.Array, *, key: jax.Array | None = None) -> jax.Array:
        theta = self.theta(image, key=key)
        last = jnp.moveaxis(image, 0, -1)
        options = {"border_color": self.border_color, "antialias": self.antialias}
        read = spatial_transform(last, theta, self.output_shape, self.sampler, **options)
        return jnp.moveaxis(read, -1, 0)


def parameters_of(function: Callable[..., Any]) -> list[jax.Array]:
    """The floating parameters of a module; a plain function has none."""
    return jax.tree.leaves(eqx.filter(function, eqx.is_inexact_array))
