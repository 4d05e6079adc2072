"""The arrays of a work: a texture of noise, where to read it, and a cotangent."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt

from .works import Work

ANGLE, TILT = 0.5, 0.3
BUILDERS = {"2d": jt.texture2d, "3d": jt.texture3d, "cubemap": jt.cubemap}
Arrays = tuple[jax.Array, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Inputs:
    """What every competitor is given. `texture` of a batch holds all images: texels (B, H, W, C)."""

    texture: jt.Texture
    coords: Arrays
    footprint: Arrays  # ddx, then ddy, of an anisotropic read
    lod: jax.Array | None
    theta: jax.Array | None
    cotangent: Any  # None without a backward pass

    @property
    def places(self) -> Arrays:
        """What says where to read: coordinates, then the footprint or the level of detail; or the matrices."""
        return tuple(a for a in (*self.coords, *self.footprint, self.lod, self.theta) if a is not None)


def inputs(work: Work) -> Inputs:
    return made(work.plain)


@functools.lru_cache(maxsize=1)
def made(work: Work) -> Inputs:
    return jax.jit(lambda key: make(work, key))(jax.random.PRNGKey(0))


def make(work: Work, key: jax.Array) -> Inputs:
    key, for_coords, for_cotangent = jax.random.split(key, 3)
    coords = () if work.batch else coordinates(work, for_coords)
    shape = (*[work.batch] * bool(work.batch), *[work.samples] * work.dimensions, work.channels)
    cotangent = jax.random.normal(for_cotangent, shape).astype(work.dtype)
    return Inputs(
        texture(work, key),
        coords,
        footprint(work) if work.anisotropy else (),
        smooth_lod(work.samples) if work.mips and not work.anisotropy else None,
        matrices(for_coords, work.batch) if work.batch else None,
        cotangent if work.backward else None,
    )


def texture(work: Work, key: jax.Array) -> jt.Texture:
    front = (6,) if work.kind == "cubemap" else (work.batch,) if work.batch else ()
    shape = (*front, *(work.side,) * work.dimensions, work.channels)
    if work.dtype == "uint8":
        texels = jax.random.randint(key, shape, 0, 256).astype(jnp.uint8)
    else:
        texels = jax.random.normal(key, shape).astype(work.dtype)
    if work.batch:
        return jt.Texture(texels)
    built = BUILDERS[work.kind](texels)
    return jt.build_mipmaps(built) if work.mips else built


def coordinates(work: Work, key: jax.Array) -> Arrays:
    if work.coordinates == "random":
        return tuple(jax.random.uniform(key, (work.dimensions, *(work.samples,) * work.dimensions)))
    return panorama(work.samples) if work.kind == "cubemap" else rotated(work.samples, work.dimensions)


def centered(n: int) -> jax.Array:
    """The centers of n cells, from -0.5 to 0.5."""
    return (jnp.arange(n) + 0.5) / n - 0.5


def turned(a: jax.Array, b: jax.Array, angle: float) -> Arrays:
    cos, sin = np.cos(angle), np.sin(angle)
    return a * cos - b * sin, b * cos + a * sin


def rotated(n: int, dimensions: int) -> Arrays:
    """Normalized coordinates of an image turned by 0.5 rad; of a volume, tilted as well."""
    x, y, *z = jnp.broadcast_arrays(*(centered(n).reshape(-1, *[1] * k) for k in range(dimensions)))
    if z:
        y, z[0] = turned(y, z[0], TILT)
    return tuple(c + 0.5 for c in (*turned(x, y, ANGLE), *z))


def rotation(n: int) -> np.ndarray:
    """The matrix in pixels of an image turned by 0.5 rad, from output to input."""
    cos, sin, middle = np.cos(ANGLE), np.sin(ANGLE), n / 2
    return np.float32([[cos, -sin, middle * (1 - cos + sin)], [sin, cos, middle * (1 - cos - sin)]])


def panorama(n: int) -> Arrays:
    """Directions in all of space, row by row from the south to the north."""
    longitude, latitude = jnp.broadcast_arrays(centered(n) * (2 * np.pi), centered(n)[:, None] * np.pi)
    across = jnp.cos(latitude)
    return across * jnp.sin(longitude), jnp.sin(latitude), across * jnp.cos(longitude)


def footprint(work: Work) -> Arrays:
    """Derivatives of the coordinates along x and y of the picture, for each sample."""
    texel, whole = 1 / work.side, jnp.ones((work.samples,) * 2)
    (down_x, down_y), (along_x, along_y) = turned(0, texel, ANGLE), turned(work.anisotropy * texel, 0, ANGLE)
    return tuple(step * whole for step in (along_x, along_y, down_x, down_y))


def smooth_lod(n: int) -> jax.Array:
    """A level of detail from 0 to 4, a few turns across the picture."""
    return 2 + 2 * jnp.sin(7 * centered(n)) * jnp.cos(5 * centered(n)[:, None])


def matrices(key: jax.Array, n: int) -> jax.Array:
    """Affine maps (n, 2, 3) near the identity, as a spatial transformer learns them."""
    return jnp.eye(2, 3) + 0.2 * jax.random.normal(key, (n, 2, 3))
