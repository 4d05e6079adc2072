"""Reads recorded on a real texture unit (tests/data), against `arithmetic="float"`.

Both agree wherever float arithmetic is asked for the same texels. They part on a texel's very edge, where a position
of 21 bits and a float32 one fall on different sides, and by the 8 bits of the hardware's fractions. Each such sample is
proved to be one: the hardware's rule, in exact arithmetic, gives the recorded texel.
"""

import numpy as np
import pytest

from tests.oracles import reads as oracle
from tests.recorded.recorded_reads import read_all, recorded_cases
from tests.support.tolerances import TOLERANCES, assert_close, assert_exact, named

# The groups without mip levels, cubes and sRGB: one texture, one address rule an axis.
GROUPS = ("1d", "2d", "3d", "1dlayered", "2dlayered", "2dmixed", "gather", "format", "element")
POSITION_BITS = 21
# The rows of what a result is rounded to: codes, or the dtype of the texels.
ROUNDINGS = {"code": "texture unit code", "float32": "texture unit float32", "float16": "texture unit float16"}

CASES = [c for c in recorded_cases("golden") if c.group in GROUPS]
# Groups that are read by default; the others differ from them in the number of axes alone.
QUICK = ("1d", "gather", "format", "element")


def hardware_position(case, axis):
    """The exact position on the hardware: float64 holds every product here. Whole periods are dropped."""
    x = case.coords[axis].astype(np.float64)
    x = np.where(np.isnan(x), 0, x)
    size, periodic = case.sizes[axis], case.modes[axis] in ("wrap", "mirror")
    if periodic:
        x = np.where(np.abs(x) < 2**24, x, 0)
        x = x - 2 * np.trunc(x / 2)
    p = np.floor(x * 2**POSITION_BITS) * size / 2**POSITION_BITS if case.normalized else x
    return p if periodic else np.clip(p, -4, size + 4)


def float_position(case, axis):
    return oracle.position(case.coords[axis], case.sizes[axis], case.modes[axis], case.normalized)


def texels_at(case, taps):
    """The texels at unbounded integer taps, one array an axis, as the read returns them: (n, 4)."""
    index, inside = zip(*map(oracle.address, taps, case.sizes, case.modes), strict=True)
    front = () if case.layer is None else (oracle.address(case.layer, len(case.texels), "border"),)
    front = tuple(np.where(known, i, len(case.texels) - 1) for i, known in front)
    texels = oracle.decode(case.texels, case.read_mode)[front + index[::-1]]
    return np.where(np.all(inside, axis=0)[:, None], texels, case.border).astype(case.out.dtype)


def axes(case, position):
    return [position(case, axis) for axis in range(len(case.sizes))]


def corners(case, lows):
    """The channel of a gather, in its order, of footprints whose lower taps are floor(lows)."""
    x, y = (np.floor(p).astype(int) for p in lows)
    order = ((x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y))
    return np.stack([texels_at(case, taps)[:, case.component] for taps in order], axis=-1)


def footprint_lows(case):
    """Where linear footprints start: on the hardware, rounded to 8 bits of fraction, and in float arithmetic."""
    exact = [np.floor(256 * p + 0.5) / 256 - 0.5 for p in axes(case, hardware_position)]
    return exact, [p - 0.5 for p in axes(case, float_position)]


def point_texels(case, positions):
    return texels_at(case, [np.floor(p).astype(int) for p in positions])


def assert_point(case, values):
    """Bit for bit, but where the positions, less than 2^-16 of a texel apart, have a texel's edge between them."""
    exact, rounded = axes(case, hardware_position), axes(case, float_position)
    hardware, ours = point_texels(case, exact), point_texels(case, rounded)
    assert_exact(case.out, hardware)
    assert_close("texture unit position", rounded, exact, 1)

    assert values.dtype == (np.float32 if case.read_mode == "normalized_float" else case.texels.dtype)
    assert_exact(values.astype(case.out.dtype), ours)
    if not case.normalized:
        assert_exact(values, case.out)


def assert_linear(case, values):
    """Within one fraction of 8 bits an axis, of the contrast of the texels that are blended."""
    positions = axes(case, float_position)
    lows = [np.floor(p - 0.5).astype(int) for p in positions]
    blended = [texels_at(case, [low + k for low, k in zip(lows, step)]) for step in np.ndindex(*[2] * len(lows))]
    rounding = TOLERANCES[ROUNDINGS["code" if case.read_mode == "normalized_float" else case.texels.dtype.name]]
    scale = len(lows) * np.ptp(blended, axis=0) + rounding / TOLERANCES["texture unit axis"] * np.max(np.abs(blended))
    assert_close("texture unit axis", values, case.out, scale)


def assert_gather(case, values):
    """The same four texels, but within 1/512 of a tap's edge, where the hardware may have moved to the next tap."""
    exact, rounded = footprint_lows(case)
    hardware, ours = corners(case, exact), corners(case, rounded)
    assert_exact(case.out, hardware)
    assert_close("texture unit position", rounded, exact, 1 + 1 / 512 / TOLERANCES["texture unit position"])

    assert_exact(values, ours)


CHECKS = {"point": assert_point, "linear": assert_linear}


@pytest.mark.parametrize("group", [pytest.param(g, marks=[pytest.mark.slow] * (g not in QUICK)) for g in GROUPS])
def test_recorded_reads(group):
    cases = [case for case in CASES if case.group == group]
    for case, values in zip(cases, read_all(cases, "float")):
        with named(case):
            (assert_gather if case.gather else CHECKS[case.filter])(case, values)


def test_what_was_recorded():
    clamped = [c for c in CASES if c.modes != c.declared_modes]
    assert (len(CASES), sum(len(c.out) for c in CASES)) == (164, 35_840)
    assert (len(clamped), sum(c.modes[0] != c.declared_modes[0] for c in clamped)) == (40, 32)
    special = np.concatenate([np.concatenate(c.coords) for c in CASES])
    for value in (np.inf, -np.inf, 1e9, -1e9, 1e-30, -1e-30):
        assert np.float32(value) in special
    assert np.isnan(special).any()
    assert np.any((special == 0) & np.signbit(special))
