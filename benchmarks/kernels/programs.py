"""The programs: each is a function of one sample, a grid, and what the function reads."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt

lax, f32 = jax.lax, jnp.float32
POINT = jt.Sampler(read_mode="normalized_float", filter_mode="point", normalized_coords=False)
LINEAR = jt.Sampler(normalized_coords=False)
BYTES = jt.Sampler(read_mode="normalized_float")


class Program(NamedTuple):
    """A program.

    Attributes:
        function: what a thread computes: ``function(*index, *args)``.
        shape: the grid.
        args: what all threads read.
        wrt: the positions of `args` with a gradient; none if only values are timed.
        in_axes, out_axes: as `jaxtex.fused_map` takes them.
        is_batch: whether each of `args` is a batch, over which the program is mapped.
        library: the same by a function of the library, if there is one.
        bound: how the first argument, an image, may be bound to a texture unit.
    """

    function: Callable[..., Any]
    shape: tuple[int, ...]
    args: tuple[Any, ...]
    wrt: tuple[int, ...] = ()
    in_axes: Any = None
    out_axes: int = 0
    is_batch: bool = False
    library: Callable[..., Any] | None = None
    bound: jt.Sampler | None = None

    def fused(self, *args: Any) -> Any:
        run = jt.fused_map(self.function, self.shape, in_axes=self.in_axes, out_axes=self.out_axes)
        return jax.vmap(run)(*args) if self.is_batch else run(*args)

    def by_arrays(self, *args: Any) -> Any:
        """The same by `jax.vmap`."""
        axes = self.in_axes if isinstance(self.in_axes, tuple) else (self.in_axes,) * len(args)
        mapped, indices = self.function, [jnp.arange(n, dtype=jnp.int32) for n in self.shape]
        for k in reversed(range(len(self.shape))):
            of_index = tuple(0 if axis == k else None for axis in range(len(self.shape)))
            mapped = jax.vmap(mapped, (*of_index, *axes), self.out_axes)
        run = functools.partial(mapped, *indices)
        return jax.vmap(run)(*args) if self.is_batch else run(*args)

    def gradients(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """The gradients of a loss whose cotangent is the last argument."""

        def of_all(cotangent: Any, *args: Any) -> Any:
            some = lambda *moving: run(*(dict(zip(self.wrt, moving)).get(k, a) for k, a in enumerate(args)))
            return jax.vjp(some, *(args[k] for k in self.wrt))[1](cotangent)

        return of_all


def random(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 256, shape).astype(dtype)
    return rng.random(shape, np.float32)


def centers(*index: Any) -> tuple[Any, ...]:
    """The centers of texels in texels, x first."""
    return tuple(i.astype(f32) + 0.5 for i in reversed(index))


def reader(image: Any, sampler: jt.Sampler) -> Callable[..., Any]:
    """Reads of an image, or of a texture that is bound with a sampler of its own."""
    if isinstance(image, jt.Texture):
        return functools.partial(jt.sample, image)
    return functools.partial(jt.sample, jt.texture2d(image), sampler=sampler)


def on_unit(sampler: jt.Sampler) -> jt.Sampler:
    return dataclasses.replace(sampler, arithmetic="hardware")


# Image filters


def sobel(n: int) -> Program:
    def pixel(y: Any, x: Any, image: Any) -> Any:
        (x, y), read = centers(y, x), reader(image, POINT)
        at = lambda i, j: read((x + i, y + j))[0]
        horizontal = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)
        vertical = at(-1, -1) + 2 * at(0, -1) + at(1, -1) - at(-1, 1) - 2 * at(0, 1) - at(1, 1)
        return jnp.clip(jnp.abs(horizontal) + jnp.abs(vertical), 0, 1)

    return Program(pixel, (2 * n, 2 * n), (random(0, 2 * n, 2 * n, 1, dtype=np.uint8),), bound=on_unit(POINT))


RADIUS, SPATIAL = 5, np.exp(-(np.arange(-5, 6) ** 2) / 32.0).astype(np.float32)


def bilateral(n: int) -> Program:
    def pixel(y: Any, x: Any, image: Any, sigma: Any) -> Any:
        (x, y), read, weights = centers(y, x), reader(image, POINT), jnp.asarray(SPATIAL)
        center, scale = read((x, y)), 0.5 / (sigma * sigma)

        def row(i: Any, sums: Any) -> Any:
            def tap(j: Any, sums: Any) -> Any:
                color = read((x + (j - RADIUS), y + (i - RADIUS)))
                distance = ((color - center)[:3] ** 2).sum()
                weight = weights[i] * weights[j] * jnp.exp(-distance * scale)
                return sums[0] + weight * color, sums[1] + weight

            return lax.fori_loop(0, 2 * RADIUS + 1, tap, sums, unroll=True)

        total, weight = lax.fori_loop(0, 2 * RADIUS + 1, row, (jnp.zeros(4), f32(0)))
        return total / weight

    args = random(1, n // 2, n // 2, 4, dtype=np.uint8), np.float32(0.1)
    return Program(pixel, (n // 2, n // 2), args, bound=on_unit(POINT))


def median(n: int) -> Program:
    """The median of 3 x 3 texels, by a network of comparisons."""

    def pixel(y: Any, x: Any, image: Any) -> Any:
        (x, y), read = centers(y, x), reader(image, POINT)
        v = [read((x + i, y + j))[0] for j in (-1, 0, 1) for i in (-1, 0, 1)]
        for a, b in MEDIAN_OF_NINE:
            v[a], v[b] = jnp.minimum(v[a], v[b]), jnp.maximum(v[a], v[b])
        return v[4]

    return Program(pixel, (2 * n, 2 * n), (random(2, 2 * n, 2 * n, 1, dtype=np.uint8),), bound=on_unit(POINT))


# Sorts the middle of nine numbers into its place.
MEDIAN_OF_NINE = [
    *((1, 2), (4, 5), (7, 8), (0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8), (0, 3)),
    *((5, 8), (4, 7), (3, 6), (1, 4), (2, 5), (4, 7), (4, 2), (6, 4), (4, 2)),
]
SEARCH, PATCH, NOISE = 3, 1, 0.15


def nonlocal_means(n: int) -> Program:
    """Means of 7 x 7 colors, weighted by how alike their neighborhoods of 3 x 3 are."""

    def pixel(y: Any, x: Any, image: Any) -> Any:
        (x, y), read = centers(y, x), reader(image, POINT)
        at = lambda i, j: read((x + i, y + j))
        patch = [(i, j) for j in range(-PATCH, PATCH + 1) for i in range(-PATCH, PATCH + 1)]
        own = [at(i, j)[:3] for i, j in patch]

        def candidate(k: Any, sums: Any) -> Any:
            u, v = k % (2 * SEARCH + 1) - SEARCH, k // (2 * SEARCH + 1) - SEARCH
            distance = sum(((at(u + i, v + j)[:3] - o) ** 2).sum() for (i, j), o in zip(patch, own))
            weight = jnp.exp(-distance / (len(patch) * NOISE**2))
            return sums[0] + weight * at(u, v), sums[1] + weight

        total, weight = lax.fori_loop(0, (2 * SEARCH + 1) ** 2, candidate, (jnp.zeros(4), f32(0)))
        return total / weight

    return Program(pixel, (n // 2, n // 2), (random(3, n // 2, n // 2, 4, dtype=np.uint8),), bound=on_unit(POINT))


def bicubic(n: int) -> Program:
    """A cubic B-spline by four linear reads, of an image enlarged by two."""

    def pixel(y: Any, x: Any, image: Any) -> Any:
        x, y = ((i.astype(f32) + 0.5) / 2 - 0.5 for i in (x, y))
        read, (px, fx), (py, fy) = reader(image, LINEAR), whole_and_rest(x), whole_and_rest(y)
        (gx0, gx1, hx0, hx1), (gy0, gy1, hy0, hy1) = pairs(fx), pairs(fy)
        at = lambda h, k: read((px + h + 0.5, py + k + 0.5))
        return gy0 * (gx0 * at(hx0, hy0) + gx1 * at(hx1, hy0)) + gy1 * (gx0 * at(hx0, hy1) + gx1 * at(hx1, hy1))

    def pairs(f: Any) -> tuple[Any, ...]:
        """The weights of two linear reads, and their distances."""
        w = (1 - f) ** 3 / 6, (4 + 3 * f**3 - 6 * f**2) / 6, (1 + 3 * (f + f**2 - f**3)) / 6, f**3 / 6
        return w[0] + w[1], w[2] + w[3], w[1] / (w[0] + w[1]) - 1, w[3] / (w[2] + w[3]) + 1

    return Program(pixel, (2 * n, 2 * n), (random(4, n, n, 4),), wrt=(0,), bound=on_unit(LINEAR))


def whole_and_rest(x: Any) -> tuple[Any, Any]:
    return jnp.floor(x), x - jnp.floor(x)


# Several textures


def blend(n: int) -> Program:
    """A rotated and a plain image, blended by a rotated mask, with a gamma."""

    def pixel(y: Any, x: Any, a: Any, b: Any, mask: Any, p: Any) -> Any:
        u, v, cos, sin = (x.astype(f32) + 0.5) / n, (y.astype(f32) + 0.5) / n, jnp.cos(p[0]), jnp.sin(p[0])
        turned = (u - 0.5) * cos - (v - 0.5) * sin + 0.5, (v - 0.5) * cos + (u - 0.5) * sin + 0.5
        share = jt.sample(jt.texture2d(mask), turned)
        mixed = share * jt.sample(jt.texture2d(a), turned) + (1 - share) * jt.sample(jt.texture2d(b), (u, v))
        return mixed ** p[1]

    images = random(5, n, n, 4), random(6, n, n, 4), random(7, n, n, 1)
    return Program(pixel, (n, n), (*images, np.array([0.5, 0.8], np.float32)), wrt=(0, 1, 2, 3))


def morph(n: int) -> Program:
    """Two images, each warped along its flow, and faded."""

    def pixel(y: Any, x: Any, a: Any, b: Any, there: Any, back: Any, time: Any) -> Any:
        x, y = centers(y, x)
        moved = lambda image, flow, t: jt.sample(jt.texture2d(image), (x + t * flow[0], y + t * flow[1]), LINEAR)
        return (1 - time) * moved(a, there, time) + time * moved(b, back, 1 - time)

    flows = tuple(8 * random(k, n, n, 2) - 4 for k in (10, 11))
    args = (random(8, n, n, 4), random(9, n, n, 4), *flows, np.float32(0.4))
    return Program(pixel, (n, n), args, wrt=(0, 1, 2, 3), in_axes=(None, None, 0, 0, None))


def images(n: int) -> Program:
    """A batch for training: rotated, normalized, in bfloat16, with channels first."""
    count, side = (256, 224) if n >= 512 else (4, 32)
    mean, deviation = np.array([0.5, 0.4, 0.3], np.float32), np.array([0.2, 0.3, 0.25], np.float32)

    def pixel(y: Any, x: Any, image: Any, angle: Any) -> Any:
        u, v, cos, sin = (x.astype(f32) + 0.5) / side - 0.5, (y.astype(f32) + 0.5) / side - 0.5, *turns(angle)
        color = jt.sample(jt.texture2d(image), (cos * u - sin * v + 0.5, sin * u + cos * v + 0.5), BYTES)
        return ((color - mean) / deviation).astype(jnp.bfloat16)

    turns = lambda angle: (jnp.cos(angle), jnp.sin(angle))
    batch, angles = random(12, count, side, side, 3, dtype=np.uint8), random(13, count)
    return Program(pixel, (side, side), (batch, angles), out_axes=1, is_batch=True)


def tanh(n: int) -> Program:
    size = 2 * n

    def pixel(y: Any, x: Any, image: Any) -> Any:
        u, v = x.astype(f32) / size, y.astype(f32) / size
        return jnp.tanh(jt.sample(jt.texture2d(image), (0.9 * u + 0.1 * v, 0.95 * v + 0.02)))

    return Program(pixel, (size, size), (random(14, size, size, 4),), wrt=(0,))


def shader(n: int) -> Program:
    """A reflection in a cubemap: normals from a map, and a level of detail from the texels that a pixel covers."""
    levels = jt.build_mipmaps(jt.cubemap(random(15, 6, 256, 256, 4)))

    def pixel(y: Any, x: Any, normals: Any, sky: Any) -> Any:
        x, y = centers(y, x)
        texture = jt.texture2d(normals)

        def direction(x: Any, y: Any) -> Any:
            normal = 2 * jt.sample(texture, (x, y), LINEAR)[:3] - 1
            normal = normal / jnp.sqrt((normal**2).sum() + 1e-6)
            view = jnp.stack([x / n - 0.5, y / n - 0.5, f32(1)])
            return view - 2 * (view * normal).sum() * normal

        at, right, below = direction(x, y), direction(x + 1, y), direction(x, y + 1)
        ddx, ddy = (tuple(other - at) for other in (right, below))
        return jt.sample(sky, tuple(at), jt.Sampler(mipmap_filter_mode="linear"), ddx=ddx, ddy=ddy)

    return Program(pixel, (n, n), (random(16, n, n, 4), levels))


# Volumes and learning


def volume(n: int) -> Program:
    """Emission and absorption along 256 samples, by a transfer function; a ray ends where it is opaque."""
    side, steps = (256, 256) if n >= 512 else (16, 16)

    def ray(y: Any, x: Any, density: Any, colors: Any) -> Any:
        u, v = (x.astype(f32) + 0.5) / (2 * side), (y.astype(f32) + 0.5) / (2 * side)
        inside, table = jt.texture3d(density), jt.texture1d(colors)

        def step(state: Any) -> Any:
            k, color, alpha = state
            z = (k.astype(f32) + 0.5) / steps
            emitted = jt.sample(table, (jt.sample(inside, (0.9 * u + 0.1 * z, v, z))[0],))
            absorbed = emitted[3] * (1 - alpha)
            return k + 1, color + absorbed * emitted[:3], alpha + absorbed

        goes_on = lambda state: (state[0] < steps) & (state[2] < 0.95)
        _, color, alpha = lax.while_loop(goes_on, step, (jnp.int32(0), jnp.zeros(3), f32(0)))
        return jnp.append(color, alpha)

    colors = random(18, 256, 4) * np.array([1, 1, 1, 0.1], np.float32)
    return Program(ray, (2 * side, 2 * side), (random(17, side, side, side, 1), colors))


def radiance_field(n: int) -> Program:
    """Rays through a multiresolution grid, whose features a small network turns into color and density."""
    side, steps = max(16, n // 8), 32
    grid = jt.nn.MultiresolutionGrid(num_levels=4, log2_hashmap_size=14 if n >= 512 else 8)
    table = random(19, sum(grid.table_sizes), grid.features_per_level) - np.float32(0.5)

    def ray(y: Any, x: Any, table: Any, hidden: Any, last: Any) -> Any:
        u, v = (x.astype(f32) + 0.5) / side, (y.astype(f32) + 0.5) / side

        def step(state: Any, k: Any) -> Any:
            light, passed = state
            z = (k.astype(f32) + 0.5) / steps
            features = jt.nn.multiresolution_grid(table, jnp.stack([u, v, z]), grid)
            found = jnp.maximum(features @ hidden, 0) @ last
            opacity = 1 - jnp.exp(-jax.nn.softplus(found[3]) / steps)
            return (light + passed * opacity * jax.nn.sigmoid(found[:3]), passed * (1 - opacity)), None

        start = jnp.zeros(3), f32(1)
        (light, _), _ = lax.scan(jax.checkpoint(step), start, jnp.arange(steps, dtype=jnp.int32))
        return light

    weights = random(20, 8, 16) - np.float32(0.5), random(21, 16, 4) - np.float32(0.5)
    return Program(ray, (side, side), (table, *weights), wrt=(0, 1, 2))


def attention(n: int) -> Program:
    """Deformable attention of 8 heads with 4 points in one map, written by hand, beside the library's."""
    heads, points, depth, side = 8, 4, 32, max(8, n // 32)
    queries = max(16, n * 2)

    def query(q: Any, h: Any, values: Any, locations: Any, weights: Any) -> Any:
        del q
        read = lambda place: jt.sample(jt.texture2d(values[:, :, h]), (place[0], place[1]), BORDER)
        return sum(weights[k] * read(locations[k]) for k in range(points))

    values = random(22, side, side, heads, depth)
    locations, weights = random(23, queries, heads, points, 2), random(24, queries, heads, points)

    def library(values: Any, locations: Any, weights: Any) -> Any:
        flat = values.reshape(1, side * side, heads, depth)
        found = jt.nn.deformable_attention(
            flat, ((side, side),), locations[None, :, :, None], weights[None, :, :, None]
        )
        return found.reshape(queries, heads, depth)

    args = (values, locations, weights)
    return Program(query, (queries, heads), args, wrt=(0, 1, 2), in_axes=(None, 0, 0), library=library)


def features_of(channels: int) -> Callable[[int], Program]:
    """A map of features along flows of a few texels: 32 million numbers on a GPU."""

    def features(n: int) -> Program:
        side = int((8 * n * n / channels) ** 0.5)
        flows = (8 * np.random.default_rng(25).normal(size=(side, side, 2))).astype(np.float32)

        def pixel(y: Any, x: Any, values: Any, flow: Any) -> Any:
            (x, y), texture = centers(y, x), jt.texture2d(values)
            return jt.sample(texture, (x + flow[0], y + flow[1]), LINEAR)

        return Program(pixel, (side, side), (random(26, side, side, channels), flows), wrt=(0, 1), in_axes=(None, 0))

    return features


BORDER = jt.Sampler(address_mode="border")
PROGRAMS: dict[str, Callable[[int], Program]] = {
    "Sobel filter, uint8": sobel,
    "bilateral filter, 121 reads of rgba8": bilateral,
    "volume rendering, transfer function": volume,
    "three textures blended": blend,
    "images, uint8 to bfloat16 NCHW": images,
    "read, then tanh": tanh,
    "bicubic by four linear reads": bicubic,
    "median of 3 x 3, uint8": median,
    "non-local means, rgba8": nonlocal_means,
    "reflection in a cubemap with levels": shader,
    "morph of two images along flows": morph,
    "radiance field: grid and network": radiance_field,
    "deformable attention by hand": attention,
    **{f"features along flows, C={channels}": features_of(channels) for channels in (8, 24, 32, 96, 256)},
}
