"""Paints particles on a grid with the kernels of cosmology, CIC, TSC and PCS: `jaxtex.splat` with B-splines.

Particles start on a lattice, and move along the gradient of a random potential until walls and knots form, as in
Zel'dovich's approximation of the growth of structure. Each is painted on a grid that repeats: by the linear B-spline
(cloud in cell), the quadratic one (triangular shaped cloud) and the cubic one (piecewise cubic spline), which spread it
over 2, 3 and 4 cells along each axis. The nearest cell alone is the B-spline of order 0.

The mass on the grid is the mass of the particles. Waves finer than two cells appear on the grid as coarser ones, their
aliases, and a smoother kernel leaves less of them. The program prints how far the mass is off, and which share of the
power of waves from 2 to 2.5 cells are aliases. It finds them by a second grid, half a cell beside the first: in the
mean of both spectra, aliases of odd order cancel (Hockney and Eastwood, "Computer Simulation Using Particles", 1981).

The panels show the density of a slab, where dark is empty, and a detail of it.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import Panel, magnified, save, sheet

import jaxtex as jt

KERNELS = {"NGP": 0, "CIC": 1, "TSC": 2, "PCS": 3}
SLOPE = -2.5  # of the logarithm of the power of the potential's gradient, by that of the frequency
STEP = 1.4  # of the largest waves, as a share of the step at which the first walls form


def displacements(size: int, seed: int = 0) -> np.ndarray:
    """The gradient of a random potential with a period of `size` cells, (3, size, size, size), x first, in cells."""
    k = np.stack(np.meshgrid(*[np.fft.fftfreq(size) * 2 * np.pi] * 3, indexing="ij")[::-1])
    square = (k**2).sum(0)
    square[0, 0, 0] = np.inf
    noise = np.fft.fftn(np.random.default_rng(seed).normal(size=(size, size, size)))
    potential = noise * square ** ((SLOPE - 2) / 4) * np.exp(-square) / square**0.5
    moved = np.fft.ifftn(1j * k * potential, axes=(1, 2, 3)).real
    stretch = np.abs(np.diff(moved[0], axis=2)).std()
    return (STEP * moved / stretch / 3).astype(np.float32)


@functools.partial(jax.jit, static_argnames=("size", "order"))
def painted(coords, size: int, order: int) -> jax.Array:
    """The mass in each cell of a grid that repeats, (size, size, size), of particles of mass 1."""
    kernel = jt.Sampler(filter_mode="bspline", spline_order=order, address_mode="wrap", normalized_coords=False)
    mass = jnp.ones((*coords[0].shape, 1))
    return jt.splat(mass, coords, (size, size, size, 1), kernel).texels[..., 0]


def aliased(coords, size: int, order: int) -> float:
    """The share of aliases in the power of waves from 2 to 2.5 cells."""
    grids = [np.asarray(painted(tuple(c + np.float32(s) for c in coords), size, order), np.float64) for s in (0, 0.5)]
    k = np.meshgrid(*[np.fft.fftfreq(size)] * 3, indexing="ij")
    here, there = (np.fft.fftn(grid) for grid in grids)
    both = 0.5 * (here + there * np.exp(1j * np.pi * sum(k)))
    near = (np.max(np.abs(k), 0) > 0.4) & (np.max(np.abs(k), 0) < 0.5)
    power = lambda waves: (np.abs(waves[near]) ** 2).sum()
    return 1 - power(both) / power(here)


def shown(density) -> np.ndarray:
    """A density as gray, its logarithm from a tenth of the mean to thirty times the mean."""
    return np.clip(np.log(np.maximum(density, 0.1) / 0.1) / np.log(300), 0, 1)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--particles", type=int, default=128, help="particles along each axis")
    parser.add_argument("--out", type=Path, default=Path("particles.png"))
    args = parser.parse_args(argv)
    size = args.particles
    lattice = np.stack(np.meshgrid(*[np.arange(size) + 0.5] * 3, indexing="ij")[::-1])
    coords = tuple(np.float32(lattice + displacements(size)))
    slab, corner = slice(size // 2, size // 2 + max(size // 16, 1)), size // 4
    above, below = [], []
    for name, order in KERNELS.items():
        grid = np.asarray(painted(coords, size, order))
        error = abs(grid.sum(dtype=np.float64) / size**3 - 1)
        share = aliased(coords, size, order)
        print(f"{name}: the mass is off by {error:.1e} of itself; aliases are {share:.3f} of the power near 2 cells")
        density = shown(grid[slab].mean(0))
        above.append(Panel(name, magnified(density, 2)))
        detail = density[corner : corner + size // 4, corner : corner + size // 4]
        below.append(Panel("", magnified(detail, 8), f"{100 * share:.0f} % aliases"))
    save(sheet([above, below]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
