"""Arrays of random numbers: a shape, or a seed, chooses them, so that tests which share a shape share numbers."""

import jax
import numpy as np


def normal(*shape, dtype=np.float32, seed=None):
    return np.random.default_rng(sum(shape) if seed is None else seed).normal(size=shape).astype(dtype)


def uniform(*shape, low=-0.3, high=1.3):
    return np.random.default_rng(sum(shape)).uniform(low, high, shape).astype(np.float32)


def drawn(seed, *shape, low=0.0, high=1.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def on_host(tree):
    """Arrays of NumPy, whose comparisons compile nothing."""
    return jax.tree.map(np.asarray, tree)


def near_ties():
    """Coordinates in texels at the middles between two positions of 1/256, with the two nearest floats on each side."""
    middle = ((np.arange(-600, 600) + 0.5) / 256).astype(np.float32)
    below = np.nextafter(middle, np.float32(-np.inf))
    above = np.nextafter(middle, np.float32(np.inf))
    further = np.nextafter(below, np.float32(-np.inf)), np.nextafter(above, np.float32(np.inf))
    return np.concatenate([middle, below, above, *further])
