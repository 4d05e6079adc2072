"""Coordinates of every integer type, drawn at random."""

from typing import NamedTuple

import jax
import numpy as np

# What is added to a number near a surface: most often nothing, else what a narrower type would not see.
POWERS = (7, 8, 15, 16, 24, 30, 31, 32, 33, 40, 62, 63)
OFFSETS = np.array([0, *(2**k for k in POWERS), *(-(2**k) for k in POWERS), 3 * 2**32], object)
LONG_OFFSETS = [*OFFSETS, 2**64, -(2**64), 2**64 + 2**32, 10**30, -(10**30)]
FAR_SHARE = 0.2


class Integers(NamedTuple):
    """A type of coordinates: its dtype, who makes its arrays (NumPy, JAX or Python), and whether JAX has 64 bits."""

    dtype: str
    origin: str
    x64: bool = False

    @property
    def name(self):
        return "_".join([self.dtype, self.origin, *(["x64"] if self.x64 else [])])


NARROW = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
WIDE = ("int64", "uint64")
TYPES = {
    made.name: made
    for made in (
        *(Integers(dtype, "numpy") for dtype in (*NARROW, *WIDE)),
        *(Integers(dtype, "jax") for dtype in NARROW),
        *(Integers(dtype, origin, True) for dtype in WIDE for origin in ("numpy", "jax")),
        Integers("int", "python"),
    )
}


def draw_index(rng, kind, size, shape, step=1):
    """Indices of an axis of `size` steps, as NumPy has them, or as a Python integer: near the axis or far off."""
    if kind.origin == "python":
        offset = LONG_OFFSETS[rng.integers(len(LONG_OFFSETS))] if rng.random() < 0.5 else 0
        return int(rng.integers(-2, size + 2)) * step + int(offset)
    near = rng.integers(-2, size + 2, shape) * step
    far = np.where(rng.random(shape) < FAR_SHARE, rng.integers(1, len(OFFSETS), shape), 0)
    wrapped = np.array([int(offset) % 2**64 for offset in OFFSETS], np.uint64)[far]
    return (near.astype(np.uint64) + wrapped).astype(kind.dtype)


def given(kind, index):
    """The index as the caller passes it."""
    return jax.device_put(index) if kind.origin == "jax" else index


def draw_shapes(rng, count, samples):
    """A shape for each of `count` arrays, and the shape that they broadcast to, of about that many samples."""
    whole = (samples,) if samples < 64 or rng.random() < 0.5 else (samples // 64, 64)
    if count > 1 and len(whole) > 1 and rng.random() < 0.3:  # a grid, each array along one axis or none
        shapes = [(1, whole[1]), (whole[0], 1), *[(1, 1)] * (count - 2)]
        order = rng.permutation(count)
        return [shapes[k] for k in order], whole
    shapes = [whole if k == 0 or rng.random() < 0.8 else whole[len(whole) - 1 :] for k in range(count)]
    return shapes, whole


def draw_indices(rng, kind, sizes, samples, *, x, steps=None, own=None):
    """Indices of each axis, whose shapes broadcast. Python has them of some axes, x or others; the others have arrays.

    Args:
        x: the number of the axis x.
        steps: of each axis, by default 1.
        own: the axes that Python has, by default drawn.
    """
    shapes, _ = draw_shapes(rng, len(sizes), samples)
    own = rng.random(len(sizes)) < 0.4 if own is None else own
    own[x] |= not own.any()
    kinds = [kind if kind.origin != "python" or axis else TYPES["int32_numpy"] for axis in own]
    return [draw_index(rng, *axis) for axis in zip(kinds, sizes, shapes, steps or [1] * len(sizes))]


def shape_of(indices):
    return np.broadcast_shapes(*map(np.shape, indices))


def named(indices):
    """What a text says of indices."""
    return [k if isinstance(k, int) else f"{k.dtype}{list(k.shape)}" for k in indices]


def run(call, indices, *arguments, jitted, traced):
    """The call as it stands, or compiled, where JAX's indices are arguments and others are constants."""
    if not jitted:
        return call(indices, *arguments)
    if traced:
        return jax.jit(call)(indices, *arguments)
    return jax.jit(lambda *arguments: call(indices, *arguments))(*arguments)
