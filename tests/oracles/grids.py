"""What `grid_sample` returns, in plain NumPy and float64: an independent statement of PyTorch's rules.

Nothing here imports jaxtex, jax or torch. An image is (C, H, W) or (C, D, H, W), a grid (S, 2) or (S, 3) with x first.
Indices have the center of texel i at i.
"""

from itertools import product

import numpy as np


def to_index(g, size, align_corners):
    return (g + 1) / 2 * (size - 1) if align_corners else ((g + 1) * size - 1) / 2


def clipped(index, size):
    return min(max(index, 0), size - 1)


def turned_back(index, size, align_corners):
    """Reflected at the outer centers, or at the outer edges, as often as it takes."""
    low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
    if low == high:
        return 0
    turns, rest = divmod(index - low, high - low)
    return low + rest if turns % 2 == 0 else high - rest


def inside(index, size, padding, align_corners):
    """An index as the padding has it; an index outside stays outside under zeros."""
    if padding == "reflection":
        index = turned_back(index, size, align_corners)
    return index if padding == "zeros" else clipped(index, size)


def keys(distance, a=-0.75):
    t = abs(distance)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def axis_taps(g, size, mode, padding, align_corners):
    """(texel, weight) of each tap on one axis; a texel outside is left out."""
    index = to_index(g, size, align_corners)
    if mode == "bicubic":
        low = int(np.floor(index))
        found = [(inside(k, size, padding, align_corners), keys(index - k)) for k in range(low - 1, low + 3)]
    else:
        index = inside(index, size, padding, align_corners)
        low = int(np.floor(index))
        nearest, linear = [(round(index), 1.0)], [(low, low + 1 - index), (low + 1, index - low)]
        found = nearest if mode == "nearest" else linear  # Python rounds halves to even
    return [(int(texel), weight) for texel, weight in found if 0 <= texel < size]


def taps(sizes, point, **modes):
    """(texel, weight) of each tap of a sample; `sizes` and texels are in the order of the array."""
    axes = [axis_taps(float(g), n, **modes) for g, n in zip(point[::-1], sizes, strict=True)]
    for chosen in product(*axes):
        texel, weights = zip(*chosen)
        yield texel, np.prod(weights)


def values(image, grid, **modes):
    """(C, S)."""
    out = np.zeros((len(image), len(grid)))
    for k, point in enumerate(grid):
        for texel, weight in taps(image.shape[1:], point, **modes):
            out[:, k] += weight * image[:, *texel]
    return out
