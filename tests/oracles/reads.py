"""What a texture read returns, in plain NumPy and float64: an independent statement of the rules.

Nothing here imports jaxtex or jax. Coordinates come in x, y, z order, arrays are stored slowest axis first with
channels last, and a layered texture has its layers in front. A chain of mip levels is a tuple of such arrays, and
its shapes a tuple of shapes; a cubemap has its six faces +X, -X, +Y, -Y, +Z, -Z behind the layers.
"""

from itertools import product

import numpy as np

FAR_NORMALIZED = 2.0**24  # from here on wrap and mirror read a normalized coordinate as 0
FAR_POSITION = 2.0**30  # from here on wrap, mirror and reflect read a position as 0

# Each face as its s, t and outward axes: the direction of (s, t) on a face is s * row 0 + t * row 1 + row 2, and the
# three products of a direction with the rows are s * m, t * m and m.
FACES = np.array(
    [
        [(0, 0, -1), (0, -1, 0), (1, 0, 0)],
        [(0, 0, 1), (0, -1, 0), (-1, 0, 0)],
        [(1, 0, 0), (0, 0, 1), (0, 1, 0)],
        [(1, 0, 0), (0, 0, -1), (0, -1, 0)],
        [(1, 0, 0), (0, -1, 0), (0, 0, 1)],
        [(-1, 0, 0), (0, -1, 0), (0, 0, -1)],
    ]
)


def position(coord, size, mode="clamp", normalized=True, dtype=np.float32):
    """Texel-space position of one coordinate in float64; texel i spans [i, i + 1), its center is i + 0.5.

    The product with the size is rounded to `dtype`, the coordinates' own precision, so that a sample on a texel's
    very edge falls on the same side as in the library.
    """
    x = np.asarray(coord, dtype)
    x = np.where(np.isnan(x), 0, x).astype(dtype)
    periodic = mode in ("wrap", "mirror", "sphere")
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


def on_sphere(column, row, width, height):
    """(stored row, stored column) of unbounded taps: those of the point of a sphere at such angles.

    Beyond a pole an angle from the north below 0 or above pi is a point on the other side. A point between two columns,
    half a turn of an odd width away, belongs to the one before.
    """
    longitude, from_north = (np.asarray(column) + 0.5) * 2 * np.pi / width, (np.asarray(row) + 0.5) * np.pi / height
    x, y = np.sin(from_north) * np.cos(longitude), np.sin(from_north) * np.sin(longitude)
    turns = np.arctan2(y, x) / (2 * np.pi)
    there = np.floor(turns * width - 1e-3).astype(np.int64) % width
    return np.floor(np.arccos(np.clip(np.cos(from_north), -1, 1)) / np.pi * height).astype(np.int64), there


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


def decode(texels, read_mode="element", srgb=False):
    """Stored texels as float64; sRGB codes of colors, but not of alpha, as linear light (IEC 61966-2-1)."""
    texels = np.asarray(texels)
    values = texels.astype(np.float64)
    if read_mode == "normalized_float":
        values = np.maximum(values / np.iinfo(texels.dtype).max, -1.0)
    if srgb:
        colors = 3 if values.shape[-1] >= 3 else 1
        c = values[..., :colors]
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        values = np.concatenate([linear, values[..., colors:]], -1)
    return values


def per_axis(mode, n):
    """The mode of each axis; a sphere has two, and the third one of a volume clamps."""
    if mode == "sphere":
        return ("sphere", "sphere", "clamp")[:n]
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
        addressed = (lambda tap, *_: (tap, np.ones(tap.shape, bool))) if mode == "sphere" else address
        axes.append([(*addressed(tap, size, mode), weight) for tap, weight in taps(p, filter_mode, a)])
    for corner in product(*axes):
        index, inside, weight = zip(*corner, strict=True)
        if "sphere" in per_axis(address_mode, len(coords)):
            index = (*on_sphere(*index[:2], *sizes[:2])[::-1], *index[2:])
        index = index[::-1]
        yield np.prod(weight, axis=0), front + index, np.all(inside, axis=0)


def without_nan(v, dtype):
    v = np.asarray(v, dtype)
    return np.where(np.isnan(v), 0, v).astype(dtype)


def face_of(direction, dtype=np.float64):
    """(face, direction) of directions (3, ...); what has no direction looks at the center of face +Z."""
    r = without_nan(direction, dtype)
    x, y, z = np.abs(r)
    m = np.maximum(np.maximum(x, y), z)
    r = np.where((m == 0) | np.isinf(m), np.array([0, 0, 1], dtype).reshape(3, *(1,) * m.ndim), r)
    x, y, z = np.abs(r)
    major = np.where((z >= x) & (z >= y), 2, np.where(y >= x, 1, 0))
    return 2 * major + (np.take_along_axis(r, major[None], 0)[0] < 0), r


def on_face(face, vector):
    """A vector (3, ...) along the s, t and outward axes of its face."""
    return np.einsum("...ij,j...->i...", FACES[face].astype(vector.dtype), vector)


def project(direction, dtype=np.float64):
    """(face, u, v) of a direction, u and v in [0, 1]."""
    face, r = face_of(direction, dtype)
    s, t, m = on_face(face, r)
    return face, (s / m + 1) / 2, (t / m + 1) / 2


def face_rates(direction, rate):
    """The derivative of (u, v) on the face of `direction`, where the direction changes by `rate`."""
    face, r = face_of(direction)
    s, t, m = on_face(face, r)
    ds, dt, dm = on_face(face, np.where(np.all(r == without_nan(direction, np.float64), 0), rate, 0.0))
    return (m * ds - s * dm) / (2 * m * m), (m * dt - t * dm) / (2 * m * m)


def seamless_footprint(face, u, v, size, filter_mode, dtype):
    """(weight, array index): a tap beyond one edge is a texel of the next face, one beyond a corner is shared out."""
    p, q = (position(w, size, "clamp", True, dtype) for w in (u, v))
    if filter_mode == "point":
        yield np.ones(face.shape), (face, *(address(np.floor(w).astype(int), size, "clamp")[0] for w in (q, p)))
        return
    corners = [(i, j, a * b) for i, a in taps(p, "linear") for j, b in taps(q, "linear")]
    outside = lambda k: (k < 0) | (k >= size)
    missing = sum(np.where(outside(i) & outside(j), weight, 0.0) for i, j, weight in corners)
    for i, j, weight in corners:
        s, t = (2 * i + 1) / size - 1, (2 * j + 1) / size - 1
        there, *uv = project(np.einsum("...ij,i...->j...", FACES[face], np.stack([s, t, np.ones_like(s)])))
        column, row = (np.clip(np.floor(w * size).astype(int), 0, size - 1) for w in uv)
        yield np.where(outside(i) & outside(j), 0.0, weight + missing / 3), (there, row, column)


def footprint_lod(coords, shape, ddx, ddy, *, cube, normalized, anisotropy):
    """(level of detail, [(share, offset in x, y, z)]) of the ellipse that ddx and ddy span, at the base level."""
    ddx, ddy = (np.stack([without_nan(d, np.float64) for d in dd]) for dd in (ddx, ddy))
    over_faces = lambda d: face_rates(np.stack(coords), np.where(np.isinf(d), 0, d))
    rates = [over_faces(d) if cube else d for d in (ddx, ddy)]
    sizes = shape[-2 : -2 - len(rates[0]) : -1] if normalized or cube else (1,) * len(ddx)
    lengths = [np.sqrt(sum((r * n) ** 2 for r, n in zip(rate, sizes, strict=True))) for rate in rates]
    x, y = (np.where(np.isinf(d).any(0), np.inf, length) for d, length in zip((ddx, ddy), lengths, strict=True))
    large, small = np.maximum(x, y), np.minimum(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(small > 0, np.fmin(large / small, anisotropy), np.where(large > 0, anisotropy, 1.0))
        lod = np.log2(large / ratio)
        count, along = np.ceil(ratio * (1 - 2.0**-20)), np.where(x > y, ddx, ddy)  # roundings add no read
        steps = [(k / (count + 1) - 0.5, np.where(k <= count, 1 / count, 0.0)) for k in range(1, anisotropy + 1)]
        offsets = [(share, along * np.where(share > 0, step, 0.0)) for step, share in steps]
    return lod, offsets if anisotropy > 1 else [(np.ones(lod.shape), np.zeros(ddx.shape))]


def level_shares(lod, count, mode):
    """The share of each of `count` levels in a read at the clamped level of detail."""
    lod = np.clip(lod, 0, count - 1)
    if mode == "point":
        return [np.where(np.floor(lod + 0.5) == level, 1.0, 0.0) for level in range(count)]
    return [np.maximum(0.0, 1 - np.abs(lod - level)) for level in range(count)]


def level_footprint(coords, shape, layer, *, cube, seamless, filter_mode, dtype, **plain):
    """As `footprint`, of a level of any kind."""
    if not cube:
        yield from footprint(coords, shape, layer, filter_mode=filter_mode, dtype=dtype, **plain)
        return
    front = ()
    if layer is not None:
        front = (np.where((layer < 0) | (layer >= shape[0]), shape[0] - 1, layer),)
    face, u, v = project(np.stack(coords), dtype)
    if seamless:
        for weight, index in seamless_footprint(face, u, v, shape[-2], filter_mode, dtype):
            yield weight, front + index, np.ones(face.shape, bool)
    else:
        for weight, index, inside in footprint((u, v), shape[-4:], face, filter_mode=filter_mode, dtype=dtype, **plain):
            yield weight, front + index, inside


def chain_footprint(
    coords,
    shapes,
    layer=None,
    *,
    cube=False,
    lod=None,
    ddx=None,
    ddy=None,
    mipmap_filter_mode="point",
    mipmap_level_bias=0.0,
    min_mipmap_level_clamp=0.0,
    max_mipmap_level_clamp=np.inf,
    max_anisotropy=1,
    seamless_cubemap=True,
    address_mode="clamp",
    filter_mode="linear",
    normalized_coords=True,
    cubic_coefficient=-0.5,
    dtype=np.float32,
):
    """(weight, level, array index, is it a texel?) of each tap of every sample of a chain."""
    inputs = (*coords, *(ddx or ()), *(ddy or ()), *(x for x in (lod, layer) if x is not None))
    everywhere = np.broadcast_shapes(*map(np.shape, inputs))
    spread = lambda arrays: [np.broadcast_to(x, everywhere).astype(dtype) for x in arrays]
    coords, layer = spread(coords), None if layer is None else np.broadcast_to(layer, everywhere)
    offsets, bias = [(np.ones(everywhere), np.zeros((len(coords), *everywhere)))], dtype(mipmap_level_bias)
    if lod is not None:
        lod = without_nan(*spread([lod]), dtype) + bias
    elif ddx is not None:
        options = {"cube": cube, "normalized": normalized_coords, "anisotropy": max_anisotropy}
        lod, offsets = footprint_lod(coords, shapes[0], spread(ddx), spread(ddy), **options)
        lod = lod + bias
    else:
        lod = np.zeros(everywhere)
    lod = np.maximum(np.minimum(lod, max_mipmap_level_clamp), min_mipmap_level_clamp)
    options = {"cube": cube, "seamless": seamless_cubemap, "filter_mode": filter_mode, "dtype": dtype}
    options |= {"address_mode": address_mode, "normalized": normalized_coords or cube, "a": cubic_coefficient}
    for share, offset in offsets:
        place = [(x + d).astype(dtype) for x, d in zip(coords, offset, strict=True)]
        for level, (shape, part) in enumerate(zip(shapes, level_shares(lod, len(shapes), mipmap_filter_mode))):
            for weight, index, inside in level_footprint(place, shape, layer, **options):
                yield share * part * weight, level, index, inside


def border(border_color, channels):
    return np.broadcast_to(np.float64(0 if border_color is None else border_color), (channels,))


def sample(texels, coords, layer=None, *, border_color=None, read_mode="element", srgb=False, **options):
    """Filtered read of an array or a chain: coordinates of shape S give values S + (C,)."""
    levels = [decode(level, read_mode, srgb) for level in (texels if isinstance(texels, tuple) else (texels,))]
    outside = border(border_color, levels[0].shape[-1])
    shapes = [level.shape for level in levels]
    total = 0.0
    for weight, level, index, inside in chain_footprint(coords, shapes, layer, **options):
        total = total + weight[..., None] * np.where(inside[..., None], levels[level][index], outside)
    return total


def splat(values, coords, shape, layer=None, **options):
    """Adjoint of `sample` in the texels; what would fall on the border is dropped. Many shapes give a chain."""
    chain = isinstance(shape[0], tuple)
    levels = tuple(np.zeros(s) for s in (shape if chain else (shape,)))
    for weight, level, index, inside in chain_footprint(coords, [t.shape for t in levels], layer, **options):
        np.add.at(levels[level], index, (weight * inside)[..., None] * np.asarray(values, np.float64))
    return levels if chain else levels[0]


def chain_shapes(shape, dimension, count=None):
    """The shapes of a whole chain, or of its first levels; the last `dimension` axes before the channels shrink."""
    *front, channels = shape
    front, sizes = front[: len(front) - dimension], front[len(front) - dimension :]
    whole = max(sizes).bit_length()
    return tuple(
        (*front, *(max(1, n >> level) for n in sizes), channels) for level in range(whole if count is None else count)
    )


def box(size):
    """The matrix that halves an axis: each coarse texel is the mean of the finer level over its own interval."""
    coarse = max(1, size >> 1)
    edges = np.arange(coarse + 1) * size / coarse
    j = np.arange(size)
    overlap = np.minimum(edges[1:, None], j + 1) - np.maximum(edges[:-1, None], j)
    return np.maximum(overlap, 0.0) * coarse / size


def mipmaps(texels, dimension, count=None):
    """A chain of box-filtered levels of an array whose last `dimension` axes before the channels are spatial."""
    levels = [np.asarray(texels, np.float64)]
    for _ in chain_shapes(levels[0].shape, dimension, count)[1:]:
        level = levels[-1]
        for axis in range(level.ndim - 1 - dimension, level.ndim - 1):
            level = np.moveaxis(np.tensordot(box(level.shape[axis]), level, (1, axis)), 0, axis)
        levels.append(level)
    return tuple(levels)


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


def differences(f, step=3e-4):
    """The value, first and second derivative of a smooth f at 0, by differences over five points."""
    left2, left, middle, right, right2 = (f(k * step) for k in (-2, -1, 0, 1, 2))
    first = (8 * (right - left) - (right2 - left2)) / (12 * step)
    second = (16 * (right + left) - 30 * middle - (right2 + left2)) / (12 * step**2)
    return middle, first, second
