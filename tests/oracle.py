"""What a texture read returns, in plain NumPy and float64: an independent statement of the rules.

Nothing here imports jaxtex or jax. Coordinates come in x, y, z order, arrays are stored slowest axis first with
channels last, and a layered texture has its layers in front.
"""

from itertools import product

import numpy as np

FAR_NORMALIZED = 2.0**24  # from here on wrap and mirror read a normalised coordinate as 0
FAR_POSITION = 2.0**30  # from here on wrap, mirror and reflect read a position as 0


def position(coord, size, mode="clamp", normalized=True, dtype=np.float32):
    """Texel-space position of one coordinate in float64; texel i spans [i, i + 1), its centre is i + 0.5.

    The product with the size is rounded to `dtype`, the coordinates' own precision, so that a sample on a texel's
    very edge falls on the same side as in the library.
    """
    x = np.asarray(coord, dtype)
    x = np.where(np.isnan(x), 0, x).astype(dtype)
    periodic = mode in ("wrap", "mirror")
    with np.errstate(over="ignore", invalid="ignore"):
        if normalized and periodic:
            x = np.where(np.abs(x) < FAR_NORMALIZED, x, 0).astype(dtype)
            x = x - 2 * np.trunc(x / 2)  # exact, and a period of both
        p = x * dtype(size) if normalized else x
    if mode in ("clamp", "border"):
        return np.clip(p, -4, size + 4).astype(np.float64)  # every tap is outside by then
    return np.where(np.abs(p) < FAR_POSITION, p, 0.0).astype(np.float64)


def address(tap, size, mode):
    """(stored index, is it a texel?) of an unbounded integer tap."""
    tap = np.asarray(tap)
    inside = np.ones(tap.shape, bool)
    if mode == "wrap":
        index = tap % size
    elif mode == "mirror":
        t = tap % (2 * size)
        index = np.where(t < size, t, 2 * size - 1 - t)
    elif mode == "reflect":
        t = tap % max(2 * (size - 1), 1)
        index = np.where(t < size, t, 2 * (size - 1) - t)
    else:
        index = np.clip(tap, 0, size - 1)
        if mode == "border":
            inside = index == tap
    return index, inside


def keys(t, a):
    """Keys' cubic convolution kernel; a = -0.5 is Catmull-Rom."""
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = a * (((t - 5) * t + 8) * t - 4)
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def taps(p, filter_mode, a=-0.5):
    """[(tap, weight)] of one axis at position p."""
    if filter_mode == "point":
        return [(np.floor(p).astype(np.int64), np.ones(p.shape))]
    low = np.floor(p - 0.5)
    fraction = p - 0.5 - low
    low = low.astype(np.int64)
    if filter_mode == "linear":
        return [(low, 1 - fraction), (low + 1, fraction)]
    return [(low + k, keys(fraction - k, a)) for k in (-1, 0, 1, 2)]


def decode(texels, read_mode="element"):
    """Stored texels as float64."""
    texels = np.asarray(texels)
    values = texels.astype(np.float64)
    if read_mode == "normalized_float":
        values = np.maximum(values / np.iinfo(texels.dtype).max, -1.0)
    return values


def per_axis(mode, n):
    return (mode,) * n if isinstance(mode, str) else tuple(mode)


def footprint(coords, shape, layer=None, *, address_mode, filter_mode, normalized, a, dtype):
    """(weight, array index, is it a texel?) of each tap of every sample; `shape` is the texels', channels last."""
    coords = np.broadcast_arrays(*coords, *([] if layer is None else [layer]))
    front = ()
    if layer is not None:
        *coords, layer = coords
        front = (np.where((layer < 0) | (layer >= shape[0]), shape[0] - 1, layer),)
    sizes = shape[-2 : -2 - len(coords) : -1]
    axes = []
    for x, size, mode in zip(coords, sizes, per_axis(address_mode, len(coords)), strict=True):
        p = position(x, size, mode, normalized, dtype)
        axes.append([(*address(tap, size, mode), weight) for tap, weight in taps(p, filter_mode, a)])
    for corner in product(*axes):
        index, inside, weight = zip(*corner, strict=True)
        yield np.prod(weight, axis=0), front + index[::-1], np.all(inside, axis=0)


def border(border_color, channels):
    return np.broadcast_to(np.float64(0 if border_color is None else border_color), (channels,))


def sample(
    texels,
    coords,
    layer=None,
    *,
    border_color=None,
    address_mode="clamp",
    filter_mode="linear",
    read_mode="element",
    normalized_coords=True,
    cubic_coefficient=-0.5,
    dtype=np.float32,
):
    """Filtered read: coordinates of shape S give values S + (C,)."""
    texels = decode(texels, read_mode)
    outside = border(border_color, texels.shape[-1])
    total = 0.0
    for weight, index, inside in footprint(
        coords,
        texels.shape,
        layer,
        address_mode=address_mode,
        filter_mode=filter_mode,
        normalized=normalized_coords,
        a=cubic_coefficient,
        dtype=dtype,
    ):
        total = total + weight[..., None] * np.where(inside[..., None], texels[index], outside)
    return total


def splat(
    values,
    coords,
    shape,
    layer=None,
    *,
    address_mode="clamp",
    filter_mode="linear",
    normalized_coords=True,
    cubic_coefficient=-0.5,
    dtype=np.float32,
):
    """Adjoint of `sample` in the texels; what would fall on the border is dropped."""
    texels = np.zeros(shape)
    for weight, index, inside in footprint(
        coords,
        shape,
        layer,
        address_mode=address_mode,
        filter_mode=filter_mode,
        normalized=normalized_coords,
        a=cubic_coefficient,
        dtype=dtype,
    ):
        np.add.at(texels, index, (weight * inside)[..., None] * np.asarray(values, np.float64))
    return texels


def gather(
    texels,
    coords,
    *,
    component=0,
    border_color=None,
    address_mode="clamp",
    read_mode="element",
    normalized_coords=True,
    dtype=np.float32,
):
    """The 2x2 texels that a linear read would blend, as S + (4,): (x0 y1), (x1 y1), (x1 y0), (x0 y0)."""
    texels = decode(texels, read_mode)
    outside = border(border_color, texels.shape[-1])[component]
    corners = [
        np.where(inside, texels[(*index, component)], outside)
        for _, index, inside in footprint(
            coords,
            texels.shape,
            address_mode=address_mode,
            filter_mode="linear",
            normalized=normalized_coords,
            a=-0.5,
            dtype=dtype,
        )
    ]
    x0y0, x0y1, x1y0, x1y1 = corners
    return np.stack([x0y1, x1y1, x1y0, x0y0], -1)


def fetch(texels, indices, layer=None):
    """Unfiltered texels at integer indices; outside is 0."""
    texels = np.asarray(texels)
    indices = np.broadcast_arrays(*indices, *([] if layer is None else [layer]))
    front = ()
    if layer is not None:
        *indices, layer = indices
        front = (np.where((layer < 0) | (layer >= texels.shape[0]), texels.shape[0] - 1, layer),)
    sizes = texels.shape[-2 : -2 - len(indices) : -1]
    stored, inside = zip(*[address(i, n, "border") for i, n in zip(indices, sizes, strict=True)], strict=True)
    return np.where(np.all(inside, axis=0)[..., None], texels[front + stored[::-1]], texels.dtype.type(0))
