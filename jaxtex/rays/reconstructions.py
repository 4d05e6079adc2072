"""Volumes and images from their projections: filtered backprojection."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import Array
from .._checks.texels import check_sizes
from .._checks.words import check_word
from .._engine.api import WEIGHT, Axis, plan_of_axes, read_texels
from .._reads.complex_parts import from_parts, parts_of
from .._tables.address_rules import BORDER, CLAMP
from .._tables.filter_kernels import LINEAR, POINT
from .._tables.storage_formats import is_complex, sum_dtype
from ..warp.options import ShapeLike, as_shape
from .geometries import angles_of, centers, number_of

NAME = "filtered_backprojection"
# The window of each filter, from frequencies in cycles for each pixel of the detector, 0 to 1/2.
WINDOWS: dict[str, Callable[[Array], Array]] = {
    "ramp": lambda frequency: np.ones_like(frequency),
    "shepp_logan": lambda frequency: np.sinc(frequency),
    "cosine": lambda frequency: np.cos(np.pi * frequency),
    "hamming": lambda frequency: 0.54 + 0.46 * np.cos(2 * np.pi * frequency),
    "hann": lambda frequency: 0.5 + 0.5 * np.cos(2 * np.pi * frequency),
}
PROJECTIONS = {2: "(A, width, C)", 3: "(A, height, width, C)"}


@public(compiled=True)
def filtered_backprojection(
    projections: ArrayLike,
    volume_shape: ShapeLike,
    angles: ArrayLike,
    *,
    source_distance: ArrayLike | None = None,
    detector_distance: ArrayLike | None = None,
    pixel_size: ArrayLike = 1.0,
    filter: Literal["ramp", "shepp_logan", "cosine", "hamming", "hann"] | None = "ramp",
) -> jax.Array:
    """Reconstructs a volume or an image from its line integrals, by filtered backprojection.

    Without distances, projections are those of `parallel_beam`; with both, those of `cone_beam`: of an image a fan, of
    a volume a cone, by the method of Feldkamp, Davis and Kress. Pass what made the rays. The result is the density for
    each texel: its `line_integral` along those rays gives the projections back, as far as they determine it.

    Each row of the detector is filtered; then each texel sums what all views have at its place on the detector, read by
    a linear filter, with zero outside. The terms are not stored: on a GPU, one kernel reads and sums.

    Angles must be evenly spaced over whole turns, or with a parallel beam over half a turn, such as
    ``jnp.arange(A) * (math.pi / A)``, in any order: each view counts ``pi / A``. Views of another share are weighted
    beforehand, as are those of a fan over less than a whole turn: the function is linear in the projections. Texels
    that the detector does not see in all views are wrong; a cone is exact in the plane of the source alone.

    Args:
        projections: (A, height, width, C) of a volume, or (A, width, C) of an image; numbers of any dtype.
        volume_shape: ``(D, H, W)``, or ``(H, W)`` of an image; static.
        angles: (A,), in radians, as in `parallel_beam`.
        source_distance, detector_distance: as in `cone_beam`, in texels; none of them for a parallel beam.
        pixel_size: the distance of neighboring pixels of the detector in texels, a number.
        filter: ``"ramp"``, the filter of Ramachandran and Lakshminarayanan, or its product with a window that damps
            noise and details, the more the later in this list: ``"shepp_logan"``, ``"cosine"``, ``"hamming"``,
            ``"hann"``. With `None`, projections are backprojected as they are, such as those that you have filtered
            yourself; static.

    Returns:
        ``(D, H, W, C)`` or ``(H, W, C)``, in the dtype of `projections`, a complex one too, or float32 for integers.
        Filters and sums are computed in float32, or in float64 if an argument is float64.

    Gradients: of any order, in forward and reverse mode, with respect to floating projections, `angles`, the distances
        and `pixel_size`. It is linear in the projections, and their gradient is its exact adjoint. Those of the others
        have the slope of a linear filter, which jumps at the centers of pixels. Reverse mode stores only the
        projections, filtered too. On a GPU, gradients in angles, distances and `pixel_size` store numbers for each
        texel and view.

    Raises:
        ValueError: if shapes do not fit each other, one distance is missing, or the filter is unknown.
        TypeError: if the shape or the filter is traced.

    Source: A. C. Kak and M. Slaney, "Principles of Computerized Tomographic Imaging", 1988, chapter 3; L. A. Feldkamp,
        L. C. Davis and J. W. Kress, "Practical cone-beam algorithm", 1984.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.zeros((15, 15, 1)).at[4:11, 5:9].set(1.0)
        >>> angles = jnp.arange(30) * (jnp.pi / 30)
        >>> rays = jt.rays.parallel_beam((15, 15), angles, (21,))
        >>> projections = jt.rays.line_integral(image, *rays, step=0.5)
        >>> found = jt.rays.filtered_backprojection(projections, (15, 15), angles)
        >>> jnp.abs(found[7, 6:8] - 1).max() < 0.1
        Array(True, dtype=bool)
    """
    sizes = as_shape(NAME, "volume_shape", volume_shape)
    given, angle = jnp.asarray(projections), angles_of(NAME, angles)
    check_projections(given, len(sizes), angle.shape[0])
    if filter is not None:
        check_word(NAME, "filter", filter, WINDOWS)
    numbers = {"source_distance": source_distance, "detector_distance": detector_distance}
    missing = [argument for argument, value in numbers.items() if value is None]
    if len(missing) == 1:
        raise ValueError(f"{NAME}: {missing[0]} is missing, expected both distances of a cone beam; pass it, or none.")
    pitch, *distances = (
        number_of(NAME, argument, value)
        for argument, value in {"pixel_size": pixel_size, **({} if missing else numbers)}.items()
    )
    dtype = sum_dtype(given.dtype, angle.dtype, pitch.dtype, *(a.dtype for a in distances))
    angle, pitch, *distances = (a.astype(dtype) for a in (angle, pitch, *distances))
    views = parts_of(given) if is_complex(given.dtype) else given
    scanner = Scanner(pitch, tuple(distances))
    texels = backprojected(filtered(views.astype(dtype), scanner, filter), sizes, angle, scanner)
    if is_complex(given.dtype):
        return from_parts(texels).astype(given.dtype)
    return texels.astype(given.dtype if jnp.issubdtype(given.dtype, jnp.floating) else jnp.float32)


class Scanner(NamedTuple):
    """The lengths of a scanner, in texels.

    Attributes:
        pitch: the distance of neighboring pixels of the detector.
        distances: from the center to the source and to the detector; none of a parallel beam.
    """

    pitch: jax.Array
    distances: tuple[jax.Array, ...]

    @property
    def magnification(self) -> jax.Array:
        """How much larger the detector shows what is at the center."""
        return sum(self.distances) / self.distances[0] if self.distances else jnp.ones_like(self.pitch)


# The filter


def filtered(views: jax.Array, scanner: Scanner, name: str | None) -> jax.Array:
    """Projections, (A, ..., width, C), whose rows are convolved with a filter: their backprojection is a density."""
    if name is None:
        return views
    _, *pixels, _ = views.shape
    views = views * (scanner.magnification / scanner.pitch)
    if scanner.distances:
        # A ray counts by the cosine of its angle to the central ray.
        reach = sum(scanner.distances, jnp.zeros_like(scanner.pitch))
        squares = reach * reach
        for k, count in enumerate(pixels):
            place = (centers(count, views.dtype) - count / 2) * scanner.pitch
            squares = squares + on_axis(place * place, k, len(pixels))
        views = views * (reach / jnp.sqrt(squares))[None, ..., None]
    # Zeros beyond the detector keep one end of a row from reaching the other around the period.
    period = 2 ** math.ceil(math.log2(2 * pixels[-1]))
    spectrum = jnp.fft.rfft(views, period, axis=-2)
    response = on_axis(jnp.asarray(response_of(name, period), spectrum.dtype), views.ndim - 2, views.ndim)
    return jax.lax.slice_in_dim(jnp.fft.irfft(spectrum * response, period, axis=-2), 0, pixels[-1], axis=-2)


def response_of(name: str, period: int) -> Array:
    """The frequency response of a filter for pixels at a distance of 1, (period / 2 + 1,).

    It is the spectrum of samples of the ramp filter that passes no frequency above 1/2. A ramp of frequencies in place
    of it would make the mean of every row zero.

    Source: Kak and Slaney, 1988, equation 61 of chapter 3.
    """
    distance = np.minimum(np.arange(period), period - np.arange(period))
    ramp = np.where(distance % 2, -1 / (np.pi * np.maximum(distance, 1)) ** 2, 0)
    ramp[0] = 0.25
    return np.fft.rfft(ramp).real * WINDOWS[name](np.fft.rfftfreq(period))


# The backprojection


def backprojected(views: jax.Array, sizes: tuple[int, ...], angles: jax.Array, scanner: Scanner) -> jax.Array:
    """The sum of views, (A, ..., width, C), at the place of each texel on the detector, times ``pi / A``."""
    count, *pixels, channels = views.shape
    # The samples are all texels and, as the last axis, all views.
    dtype, rank = views.dtype, len(sizes) + 1
    sine, cosine = jnp.sin(angles), jnp.cos(angles)
    places = [on_axis(centers(size, dtype) - size / 2, k, rank) for k, size in enumerate(sizes)]
    scale = jnp.broadcast_to(scanner.magnification / scanner.pitch, angles.shape)
    of_views = [cosine * scale, sine * scale, scale]
    if scanner.distances:
        of_views += [-sine / scanner.distances[0], cosine / scanner.distances[0]]
    numbers = [*places[::-1], *(on_axis(a, rank - 1, rank) for a in of_views)]
    view = on_axis(centers(count, dtype), rank - 1, rank)
    axes = [Axis(count, POINT, CLAMP), *(Axis(size, LINEAR, BORDER) for size in pixels)]
    grid = OnDetector(tuple(pixels), bool(scanner.distances))
    read = plan_of_axes([WEIGHT, *axes] if grid.is_cone else axes, grid, (view, *numbers), dtype)
    sums = read_texels(views, None, read.replace(summed_axes=(-1,))).reshape(*sizes, channels)
    return sums * np.asarray(math.pi / count, dtype)


def on_axis(line: jax.Array, axis: int, rank: int) -> jax.Array:
    """Numbers along one of `rank` axes; the others have size 1."""
    return line.reshape([-1 if k == axis else 1 for k in range(rank)])


class OnDetector(NamedTuple):
    """The grid of a backprojection: where a view shows a texel, in pixels, and in a cone by which weight.

    Attributes:
        pixels: the sizes of the detector, in stored order.
        is_cone: whether rays come from a point.
    """

    pixels: tuple[int, ...]
    is_cone: bool

    def __call__(self, view: jax.Array, *numbers: jax.Array) -> tuple[jax.Array, ...]:
        ndim = 1 + len(self.pixels)
        (x, y, *z), (right, down, up, *along) = numbers[:ndim], numbers[ndim:]
        places = [*(height * up for height in z), x * right + y * down]
        if not self.is_cone:
            return view, *self.on_pixels(places)
        # The distance to the source along the central ray, divided by that of the center. A view does not show what
        # is behind the source.
        depth = 1 + x * along[0] + y * along[1]
        seen = depth > 0
        near = jnp.where(seen, 1 / jnp.where(seen, depth, 1), 0)
        return near * near, view, *self.on_pixels([place * near for place in places])

    def on_pixels(self, places: list[jax.Array]) -> list[jax.Array]:
        """Distances from the middle of the detector as coordinates."""
        return [place + size / 2 for place, size in zip(places, self.pixels)]


def check_projections(projections: jax.Array, ndim: int, count: int) -> None:
    """Projections of a view for each angle."""
    check_sizes(f"{NAME}: projections has shape {projections.shape}", projections.shape)
    if projections.ndim != ndim + 1 or 0 in projections.shape:
        raise ValueError(
            f"{NAME}: projections has shape {projections.shape}, expected {PROJECTIONS[ndim]} of one view and pixel or "
            f"more, as volume_shape has {ndim} sizes; add an axis for one channel, projections[..., None], and map "
            f"over a batch by jax.vmap."
        )
    if projections.shape[0] != count:
        raise ValueError(
            f"{NAME}: projections has {projections.shape[0]} views and angles has shape {(count,)}; pass one angle for "
            f"each view."
        )
