"""What a read among knots returns, in float64, from the definitions: an independent statement of the rules.

Each axis is laid out tap by tap, far beyond both edges, each tap with its coordinate and the texel that it reads.
Nothing here imports jaxtex.
"""

import itertools
import math

import numpy as np

from tests.oracles.reads import address


def laid_out(knots, size, mode, reach):
    """(taps, their coordinates, in order) of an axis with knots and edges; `mode` names how y of a sphere continues."""
    if knots.shape[0] == size:
        ends = (3 * knots[0] - knots[1]) / 2, (3 * knots[-1] - knots[-2]) / 2
    else:
        ends, knots = (knots[0], knots[-1]), knots[1:-1]
    low, high = ends
    taps = range(-reach, size + reach)

    def of(tap):
        if mode == "wrap":
            return knots[tap % size] + (tap // size) * (high - low)
        if mode == "reflect" and size > 1:
            turn, phase = divmod(tap, 2 * (size - 1))
            first, last = knots[0], knots[-1]
            here = knots[phase] if phase < size else 2 * last - knots[2 * (size - 1) - phase]
            return here + turn * 2 * (last - first)
        turn, phase = divmod(tap, 2 * size)
        here = knots[phase] if phase < size else 2 * high - knots[2 * size - 1 - phase]
        return here + turn * 2 * (high - low)

    return np.array(taps), np.stack([of(tap) for tap in taps])


def axis_taps(coord, knots, size, mode, filter_mode):
    """[(tap, weight)] of one axis, nearest two first; tap is (S,)."""
    taps, places = laid_out(knots, size, mode, 4 * size + 8)
    if mode == "clamp":  # the axis ends at its last knots
        ends = slice(4 * size + 8, 5 * size + 8)
        taps, places = taps[ends], places[ends]
        coord = np.clip(coord, places.min(), places.max())
        if size == 1:
            return [(np.zeros(np.shape(coord), int), np.ones_like(coord))]
    sign = 1 if places[-1] > places[0] else -1
    cell = np.searchsorted(sign * places, sign * coord, side="right") - 1
    cell = cell.clip(0, len(taps) - 2)
    fraction = (coord - places[cell]) / (places[cell + 1] - places[cell])
    if filter_mode == "point":
        before, after = np.abs(coord - places[cell]), np.abs(places[cell + 1] - coord)
        return [(taps[np.where(before < after, cell, cell + 1)], np.ones_like(coord))]
    if filter_mode == "linear":
        return [(taps[cell], 1 - fraction), (taps[cell + 1], fraction)]
    count = min(4, len(taps))
    first = (cell - 1).clip(0, len(taps) - count)
    found = []
    for k in range(count):
        others = [places[first + m] for m in range(count) if m != k]
        weight = math.prod([(coord - other) / (places[first + k] - other) for other in others])
        found.append((taps[first + k], weight))
    return found


def sample(texels, coords, knots, modes, filter_mode, color=0.0, limited=False):
    """The read of (..., z, y, x, C) texels at coordinates (S,) in the units of knots, x first."""
    sizes = texels.shape[-2::-1]
    sphere = modes[0] == "sphere"
    continued = ("wrap", "mirror", *modes[2:]) if sphere else modes

    def read(how):
        of_axes = [axis_taps(*axis, how) for axis in zip(coords, knots, sizes, continued, strict=True)]
        for chosen in itertools.product(*of_axes):
            weight, index, inside = 1.0, [], True
            for (tap, w), size, mode in zip(chosen, sizes, continued):
                here, within = address(tap, size, mode)
                weight, inside = weight * w, inside & within
                index.append(here)
            if sphere:  # over a pole, half a turn away
                beyond = chosen[1][0] // sizes[1] % 2 == 1
                index[0] = np.where(beyond, (index[0] + sizes[0] // 2) % sizes[0], index[0])
            texel = texels[tuple(index[::-1])]
            yield weight, np.where(inside[..., None], texel, color)

    value = sum(weight[..., None] * texel for weight, texel in read(filter_mode))
    if limited:
        near = [texel for _, texel in read("linear")]
        low, high = np.min(np.stack(near), 0), np.max(np.stack(near), 0)
        value = np.clip(value, low, high)
    return value
