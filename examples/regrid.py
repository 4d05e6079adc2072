"""A field from a grid of Gaussian latitudes to a regular grid, and back.

Models of the atmosphere keep fields on Gaussian latitudes, which are the nodes of a quadrature and not evenly spaced;
analyses often stand on a regular grid of latitudes. Either grid is a texture whose y axis has knots, the latitudes,
with the poles as edges. Reading it at the latitudes of the other grid is the regridding, under the address mode
"sphere", which knows what lies beyond a pole.

The program prints the largest error on the regular grid, and after the way back, for the linear filter and for cubics
through four texels; and what both grids say about the mean over the sphere.
"""

import argparse

import numpy as np

import jaxtex as jt


def gaussian(height: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian latitudes from north to south, and the share of the sphere that each has."""
    nodes, weights = np.polynomial.legendre.leggauss(height)
    return np.arcsin(nodes[::-1]), weights / 2


def regular(height: int) -> tuple[np.ndarray, np.ndarray]:
    """Even latitudes from north to south, and the share of the sphere that each has."""
    edges = np.linspace(np.pi / 2, -np.pi / 2, height + 1)
    return (edges[1:] + edges[:-1]) / 2, -np.diff(np.sin(edges)) / 2


def field(turn: np.ndarray, latitude: np.ndarray) -> np.ndarray:
    """A sum of two spherical harmonics on a background, at a share of a turn and a latitude."""
    level = np.cos(latitude)
    return 1 + level**3 * np.cos(6 * np.pi * turn) + 0.5 * np.sin(latitude) * level * np.sin(2 * np.pi * turn)


def regridded(values: np.ndarray, latitudes: np.ndarray, points: tuple[np.ndarray, ...], name: str) -> np.ndarray:
    """The values of a grid with these latitudes, at other points."""
    knots = np.float32([np.pi / 2, *latitudes, -np.pi / 2])
    sampler = jt.Sampler(address_mode="sphere", filter_mode=name)
    return np.asarray(jt.sample(jt.texture2d(values, knots=(None, knots)), points, sampler))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Regrid a field from Gaussian latitudes to even ones, and back.")
    parser.add_argument("--gaussian", type=int, default=64, help="the number of Gaussian latitudes")
    parser.add_argument("--regular", type=int, default=90, help="the number of even latitudes")
    args = parser.parse_args(argv)
    grids = {"gaussian": gaussian(args.gaussian), "regular": regular(args.regular)}
    points, exact = {}, {}
    for name, (latitudes, _) in grids.items():
        turn, latitude = (np.arange(2 * len(latitudes)) + 0.5) / (2 * len(latitudes)), latitudes[:, None]
        points[name] = np.float32(turn), np.float32(latitude)
        exact[name] = np.float32(field(turn, latitude)[..., None])
    print(f"{args.gaussian} Gaussian latitudes, {args.regular} even ones, twice as many longitudes")
    for name in ("linear", "lagrange"):
        there = regridded(exact["gaussian"], grids["gaussian"][0], points["regular"], name)
        back = regridded(there, grids["regular"][0], points["gaussian"], name)
        mean = (grids["regular"][1][:, None, None] * there).sum() / there.shape[1]
        print(
            f"{name}: error {np.abs(there - exact['regular']).max():.2e} on the regular grid, "
            f"{np.abs(back - exact['gaussian']).max():.2e} after the way back, mean {mean:.6f} of 1"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
