"""Tracers on a sphere, on a grid of Gaussian latitudes: solid-body rotation and the deformational flow of Lauritzen.

The grid has even longitudes and Gaussian latitudes, which are the knots of the texture's y axis. A step is
semi-Lagrangian: each texel takes the value that is where the wind comes from, under the address mode "sphere".

The first test is the cosine bell of D. L. Williamson et al., "A standard test set for numerical approximations to the
shallow water equations in spherical geometry", 1992, once around over both poles. The second is the nondivergent flow
of P. H. Lauritzen et al., "A standard test case suite for two-dimensional linear transport on the sphere", 2012, with
its cosine bells and its Gaussian hills. That flow draws tracers into thin bands and turns back, so that they should end
where they began.

The program prints the relative error in the mean square, the mass, and the range of values: for the linear filter, for
cubics through four texels, for the same between their nearest texels, and with a fixer of mass. After each step the
fixer takes the surplus of mass from texels in proportion to the difference of the cubic and the linear read, as R.
Bermejo and J. Conde, "A conservative quasi-monotone semi-Lagrangian scheme", 2002.

`--published` takes minutes. It prints errors that others published beside errors of this program on as many latitudes:
with one step for each latitude, and with as many steps as the other scheme takes. Each step blurs, but steps of this
program may be long: with one for each latitude, its errors are the smaller ones. With as many steps, cubics are about
as good as MPDATA without limits, and limited cubics are worse than MPDATA with limits. It also prints the coarsest
resolution with an error of 0.033 of the cosine bells: 1.11 degrees in 120 steps with 120 latitudes, but 0.41 degrees in
1400, where ICON-FFSL has 0.42.
"""

import argparse
import functools
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from panels import Panel, colored, save, sheet

import jaxtex as jt

BELL = "a cosine bell over the poles"
BELLS = "cosine bells in the deformational flow"
HILLS = "Gaussian hills in the deformational flow"
SCHEMES = {
    "linear": ("linear", None, False),
    "lagrange": ("lagrange", None, False),
    "limited": ("lagrange", "taps", False),
    "limited, fixed": ("lagrange", "taps", True),
}
# A test, the scheme here that is like the other one, the other scheme, its steps for each latitude, and its errors for
# numbers of latitudes.
# J. A. Rossmanith, "A wave propagation method for hyperbolic systems on the sphere", 2006, table 2, rotation by 90
# degrees on a cubed sphere. Its faces have 20², 40², 80² and 160² cells; around the equator these are twice as many as
# the latitudes here. The numbers are those in test/cosine/rossmanith90 of github.com/DaanVanVugt/Gerris, which has no
# numbers of steps: with two for each latitude, the wind crosses one texel per step.
# M. Waruszewski et al., "MPDATA: Third-order accuracy for variable flows", 2018, on even latitudes. The numbers are
# those from which the paper's plot is drawn: columns Mp3 and Mg3No of reversing_deform_conv.txt in
# tests/mp3_paper_2018_JCP/reversing_deform/refdata of github.com/igfuw/libmpdataxx. The fields there end at step 908
# with 120 latitudes, and at step 1816 with 240.
PUBLISHED = [
    (BELL, "lagrange", "wave propagation", 2, {40: 0.196, 80: 0.0462, 160: 0.0120, 320: 0.00322}),
    (HILLS, "lagrange", "third-order MPDATA", 908 / 120, {120: 0.118, 240: 0.0235}),
    (HILLS, "limited", "third-order MPDATA, limited", 908 / 120, {120: 0.0986, 240: 0.0218}),
]
# The error of the cosine bells at which a resolution is minimal, and published minimal resolutions in degrees: J. Shaw
# et al., "Multidimensional method-of-lines transport for atmospheric flows over steep terrain using arbitrary meshes",
# 2017, as in src/slant-cell-advection/deformationSphere.tex of github.com/hertzsprung/cutcell-advection. cubicFit is
# that paper's own scheme, on hexagons, at a Courant number of about 0.4. The others are from a comparison by P. H.
# Lauritzen et al., 2014, without limits; the paper shows those whose resolution is near its own.
THRESHOLD = 0.033
MINIMAL = {"ICON-FFSL": 0.42, "cubicFit": 0.3, "SLFV-SL": 0.25, "FARSIGHT": 0.1875}
# Steps for each latitude at which the Courant number of the deformational flow is 0.4.
SHORT_STEPS = 11.67


class Grid(NamedTuple):
    """Texels on a sphere: even longitudes from 0, and Gaussian latitudes from north to south.

    Attributes:
        at: the directions of texels, (3, H, 2 H).
        latitudes: the knots of the axis, with the poles as its edges.
        area: the share of the sphere that each row's texels have, (H, 1, 1).
    """

    at: jax.Array
    latitudes: jax.Array
    area: jax.Array

    @classmethod
    def of(cls, height: int) -> "Grid":
        nodes, weights = np.polynomial.legendre.leggauss(height)
        latitudes = np.arcsin(nodes[::-1])
        longitudes = (np.arange(2 * height) + 0.5) * np.pi / height
        at = direction(longitudes, latitudes[:, None])
        area = weights[:, None, None] / (4 * height)
        knots = np.concatenate([[np.pi / 2], latitudes, [-np.pi / 2]])
        return cls(*(jnp.asarray(a, jnp.float32) for a in (at, knots, area)))


def direction(longitude: np.ndarray | float, latitude: np.ndarray | float) -> np.ndarray:
    """(3, ...), of length 1."""
    level = np.cos(latitude)
    parts = level * np.cos(longitude), level * np.sin(longitude), np.sin(latitude)
    return np.stack(np.broadcast_arrays(*parts))


def place(at: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The share of a turn, and the latitude, of directions."""
    x, y, z = at
    return jnp.arctan2(y, x) / (2 * jnp.pi), jnp.arctan2(z, jnp.hypot(x, y))


# Winds, as velocities of directions; time runs from 0 to 1


def over_the_poles(at: jax.Array, time: jax.Array | float) -> jax.Array:
    del time
    x, y, z = at
    return 2 * jnp.pi * jnp.stack([jnp.zeros_like(x), -z, y])


def deformational(at: jax.Array, time: jax.Array | float) -> jax.Array:
    x, y, z = at
    level = jnp.hypot(x, y)
    longitude = jnp.arctan2(y, x)
    moved, strength = longitude - 2 * jnp.pi * time, 10 * jnp.cos(jnp.pi * time)
    east = strength * jnp.sin(moved) ** 2 * 2 * z * level + 2 * jnp.pi * level
    north = strength * jnp.sin(2 * moved) * level
    c, s = jnp.cos(longitude), jnp.sin(longitude)
    return jnp.stack([-east * s - north * z * c, east * c - north * z * s, north * level])


def origin(wind, at: jax.Array, time: jax.Array, step: float) -> jax.Array:
    """Where the wind was at `time` that arrives at directions after `step`, by Runge and Kutta, of fourth order."""
    first = wind(at, time + step)
    second = wind(at - 0.5 * step * first, time + 0.5 * step)
    third = wind(at - 0.5 * step * second, time + 0.5 * step)
    fourth = wind(at - step * third, time)
    found = at - step / 6 * (first + 2 * second + 2 * third + fourth)
    return found / jnp.linalg.norm(found, axis=0)


# Tracers


def centers() -> list[np.ndarray]:
    return [direction(np.pi * k / 6, 0.0)[:, None, None] for k in (5, 7)]


def bells(at: jax.Array) -> jax.Array:
    """Two cosine bells of radius 1/2 on a background of 0.1."""
    away = [jnp.arccos(jnp.clip((jnp.float32(c) * at).sum(0), -1, 1)) for c in centers()]
    return 0.1 + 0.9 * sum(jnp.where(r < 0.5, 0.5 + 0.5 * jnp.cos(2 * jnp.pi * r), 0) for r in away)


def hills(at: jax.Array) -> jax.Array:
    """Two Gaussian hills."""
    return 0.95 * sum(jnp.exp(-5 * ((at - jnp.float32(c)) ** 2).sum(0)) for c in centers())


def bell(at: jax.Array) -> jax.Array:
    """One cosine bell of radius 1/3 on the equator."""
    middle = jnp.float32(direction(1.5 * np.pi, 0.0))[:, None, None]
    r = jnp.arccos(jnp.clip((middle * at).sum(0), -1, 1))
    return jnp.where(r < 1 / 3, 0.5 + 0.5 * jnp.cos(3 * jnp.pi * r), 0)


TESTS = {
    BELL: (bell, over_the_poles),
    BELLS: (bells, deformational),
    HILLS: (hills, deformational),
}


@functools.partial(jax.jit, static_argnames=("wind", "scheme", "steps", "count"))
def carried(tracer: jax.Array, grid: Grid, wind, scheme: str, steps: int, first: int | jax.Array, count: int):
    """The tracer after `count` of `steps`, beginning with step `first`."""
    name, limit, fixes = SCHEMES[scheme]
    sampler = jt.Sampler(address_mode="sphere", filter_mode=name, limit=limit)
    linear = jt.Sampler(address_mode="sphere")
    mass = (grid.area * tracer).sum()

    def step(k: int, tracer: jax.Array) -> jax.Array:
        texture = jt.texture2d(tracer, knots=(None, grid.latitudes))
        coords = place(origin(wind, grid.at, k / steps, 1 / steps))
        found = jt.sample(texture, coords, sampler)
        if not fixes:
            return found
        doubt = jnp.abs(found - jt.sample(texture, coords, linear))
        surplus = (grid.area * found).sum() - mass
        return found - doubt * surplus / jnp.maximum((grid.area * doubt).sum(), 1e-30)

    return jax.lax.fori_loop(first, first + count, step, tracer)


def error(found: jax.Array, exact: jax.Array, area: jax.Array) -> float:
    """The root of the mean square of the error, as a share of that of the tracer."""
    square = lambda values: (area * values**2).sum()
    return float(jnp.sqrt(square(found - exact) / square(exact)))


def run(test: str, scheme: str, height: int, steps: int) -> tuple[float, float, float, float]:
    """The error, the mass as a share of that at the start, and the least and the greatest value."""
    (tracer, wind), grid = TESTS[test], Grid.of(height)
    first = tracer(grid.at)[..., None]
    last = carried(first, grid, wind, scheme, steps, 0, steps)
    mass = float((grid.area * last).sum() / (grid.area * first).sum())
    return error(last, first, grid.area), mass, float(last.min()), float(last.max())


def threshold(scheme: str, height: int, steps: int) -> float:
    """The spacing of longitudes, in degrees, at which the error of the cosine bells is `THRESHOLD`."""
    errors = [run(BELLS, scheme, n, steps * n // height)[0] for n in (height, 2 * height)]
    order = np.log2(errors[0] / errors[1])
    return 180 / height * (THRESHOLD / errors[0]) ** (1 / order)


def compare(height: int, steps: int) -> None:
    """Prints published errors and minimal resolutions beside ours."""
    for test, scheme, name, ratio, errors in PUBLISHED:
        for size, theirs in errors.items():
            ours = ", ".join(f"{run(test, scheme, size, n)[0]:.4f} in {n} steps" for n in (size, round(ratio * size)))
            print(f"{test}, {size} latitudes, {scheme}: error {ours}; {name}: {theirs}")
    published = ", ".join(f"{name} {degrees}" for name, degrees in MINIMAL.items())
    print(f"degrees at which the error of the cosine bells is {THRESHOLD}: {published}")
    runs = [*((scheme, steps) for scheme in [*SCHEMES][1:]), ("lagrange", round(height * SHORT_STEPS))]
    for scheme, n in runs:  # the linear filter is far from it
        print(f"{scheme}, {n} steps with {height} latitudes: {threshold(scheme, height, n):.2f} degrees")


def chart(tracer: jax.Array, grid: Grid, width: int) -> jax.Array:
    """The map of the tracer, on even latitudes."""
    texture = jt.texture2d(tracer, knots=(None, grid.latitudes))
    at = (jnp.arange(width) + 0.5) / width, jnp.pi / 2 - (jnp.arange(width // 2)[:, None] + 0.5) * (2 * jnp.pi / width)
    how = jt.Sampler(address_mode="sphere", filter_mode="lagrange", limit="taps")
    return colored(jt.sample(texture, at, how)[..., 0])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Carry tracers around a sphere, on a grid of Gaussian latitudes.")
    parser.add_argument("--height", type=int, default=120, help="the number of latitudes; longitudes are twice as many")
    parser.add_argument("--steps", type=int, default=120, help="of one run, a multiple of four")
    parser.add_argument("--panel", type=int, default=300, help="the width of each panel of the picture")
    parser.add_argument("--published", action="store_true", help="print published errors beside ours")
    parser.add_argument("--out", type=Path, default=Path("deformational_flow.png"))
    args = parser.parse_args(argv)

    print(f"{args.height} Gaussian latitudes, {2 * args.height} longitudes, {args.steps} steps")
    for test in TESTS:
        for scheme in SCHEMES:
            mean, mass, low, high = run(test, scheme, args.height, args.steps)
            print(f"{test}, {scheme}: error {mean:.4f}, mass {mass:.6f}, values from {low:.3f} to {high:.3f}")
    if args.published:
        compare(args.height, args.steps)

    grid, (tracer, wind) = Grid.of(args.height), TESTS[BELLS]
    states = [tracer(grid.at)[..., None]]
    for k in range(4):
        states.append(carried(states[-1], grid, wind, "limited", args.steps, k * args.steps // 4, args.steps // 4))
    others = [carried(states[0], grid, wind, name, args.steps, 0, args.steps) for name in ("lagrange", "linear")]
    titles = "at the start", "a quarter", "half", "limited, at the end", "lagrange, at the end", "linear, at the end"
    shown = zip(titles, (*states[:3], states[4], *others))
    panels = [Panel(title, chart(state, grid, args.panel)) for title, state in shown]
    save(sheet([panels[:3], panels[3:]]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
