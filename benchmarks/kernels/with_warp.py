"""The programs by NVIDIA Warp 1.19: kernels in Python, with its textures, and with its derivatives in reverse mode.

Values are read by the texture unit, as by the CUDA kernels. Warp's textures have derivatives in coordinates and none in
texels, so gradients are those of linear reads that are written out over arrays, and so are the values of attention and
of the radiance field. Kernels are compiled with fast math, and launched as a CUDA graph.

Warp has no cubemaps, so it has no reflection in one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt

from ..peers.protocol import Run, on_gpu, optional
from .programs import MEDIAN_OF_NINE, NOISE, PATCH, RADIUS, SEARCH, Program

wp: Any = optional("warp")
# Decorators of what kernels call. Without Warp, nothing is called.
function = wp.func if wp else lambda given: given
gradient_of = wp.func_grad if wp else lambda forward: lambda given: given
# Numbers that kernels contain: of blocks of threads, of filters, of attention, and of the radiance field.
SIDE, BLOCK = 16, 16 * 16
WINDOW = 2 * RADIUS + 1
PATCH_SIDE, PATCHES = 2 * PATCH + 1, (2 * PATCH + 1) ** 2
SEARCH_SIDE, CANDIDATES = 2 * SEARCH + 1, (2 * SEARCH + 1) ** 2
SHARPNESS = 1 / (PATCHES * NOISE**2)
EXCHANGES = len(MEDIAN_OF_NINE)
POINTS, VECTORS = 4, 8
STEPS, LEVELS, FEATURES, HIDDEN = 32, 4, 8, 16
FIRST_PRIME, SECOND_PRIME = 2654435761 - 2**32, 805459861  # of 32 bits
# Products of matrices are Warp's own: those of cuBLASDx take minutes to compile, and more instructions.
OPTIONS = {"fast_math": True, "max_unroll": STEPS, "enable_mathdx_gemm": False}


# Functions. Those of one name are for textures and for arrays.


@function
def pixel(thread: int, width: int):
    """The pixel of a thread, whose block is a square. An index of more axes would take divisions of 64 bits."""
    number = wp.uint32(thread)
    block = number // wp.uint32(BLOCK)
    place = number % wp.uint32(BLOCK)
    across = wp.uint32(width) // wp.uint32(SIDE)
    row = block // across
    column = block - row * across
    return (
        int(row * wp.uint32(SIDE) + place // wp.uint32(SIDE)),
        int(column * wp.uint32(SIDE) + place % wp.uint32(SIDE)),
    )


@function
def linear(image: wp.array2d[Any], x: float, y: float):
    """A linear read at a position in texels."""
    left = wp.floor(x - 0.5)
    top = wp.floor(y - 0.5)
    i = wp.clamp(int(left), 0, image.shape[1] - 1)
    j = wp.clamp(int(top), 0, image.shape[0] - 1)
    k = wp.clamp(int(left) + 1, 0, image.shape[1] - 1)
    m = wp.clamp(int(top) + 1, 0, image.shape[0] - 1)
    u = x - 0.5 - left
    v = y - 0.5 - top
    return wp.lerp(wp.lerp(image[j, i], image[j, k], u), wp.lerp(image[m, i], image[m, k], u), v)


@function
def read(image: wp.Texture2D, x: float, y: float):
    return wp.texture_sample(image, x, y, dtype=wp.vec4f)


@function
def read(image: wp.array2d[wp.vec4f], x: float, y: float):  # noqa: F811
    return linear(image, x, y)


@function
def shade(image: wp.Texture2D, x: float, y: float):
    return wp.texture_sample(image, x, y, dtype=float)


@function
def shade(image: wp.array2d[float], x: float, y: float):  # noqa: F811
    return linear(image, x, y)


@function
def number(numbers: wp.array[float], k: int):
    """A number that all threads read."""
    return numbers[k]


@gradient_of(number)
def add_number(numbers: wp.array[float], k: int, slope: float):
    """The threads of a block add up their slopes before one of them adds to memory."""
    wp.tile_atomic_add(wp.adjoint[numbers], wp.tile_sum(wp.tile(slope)), offset=k)


@function
def squared(a: wp.vec4f, b: wp.vec4f):
    d = a - b
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2]


# Kernels of one thread for each pixel


def sobel(image: Any, out: Any):
    row, column = pixel(wp.tid(), out.shape[1])
    x = float(column) + 0.5
    y = float(row) + 0.5
    a = shade(image, x - 1.0, y - 1.0)
    b = shade(image, x, y - 1.0)
    c = shade(image, x + 1.0, y - 1.0)
    d = shade(image, x - 1.0, y)
    e = shade(image, x + 1.0, y)
    f = shade(image, x - 1.0, y + 1.0)
    g = shade(image, x, y + 1.0)
    h = shade(image, x + 1.0, y + 1.0)
    horizontal = c + 2.0 * e + h - a - 2.0 * d - f
    vertical = a + 2.0 * b + c - f - 2.0 * g - h
    out[row, column] = wp.min(wp.abs(horizontal) + wp.abs(vertical), 1.0)


def bilateral(image: Any, sigma: Any, out: Any):
    row, column = pixel(wp.tid(), out.shape[1])
    x = float(column) + 0.5
    y = float(row) + 0.5
    center = read(image, x, y)
    scale = 0.5 / (sigma * sigma)
    total = wp.vec4f()
    weights = wp.float32(0.0)
    rows = wp.int32(WINDOW)  # a variable, so that this loop is not unrolled
    for j in range(rows):
        for i in range(WINDOW):
            u = float(i - RADIUS)
            v = float(j - RADIUS)
            color = read(image, x + u, y + v)
            weight = wp.exp(-(u * u + v * v) / 32.0 - squared(color, center) * scale)
            total += weight * color
            weights += weight
    out[row, column] = total / weights


def median(image: Any, out: Any):
    row, column = pixel(wp.tid(), out.shape[1])
    v = wp.vector(length=9, dtype=float)
    for k in range(9):
        v[k] = shade(image, float(column + k % 3) - 0.5, float(row + k // 3) - 0.5)
    for k in range(EXCHANGES):
        a = wp.static(MEDIAN_OF_NINE[k][0])
        b = wp.static(MEDIAN_OF_NINE[k][1])
        low = wp.min(v[a], v[b])
        v[b] = wp.max(v[a], v[b])
        v[a] = low
    out[row, column] = v[4]


def nonlocal_means(image: Any, out: Any):
    row, column = pixel(wp.tid(), out.shape[1])
    x = float(column) + 0.5
    y = float(row) + 0.5
    own = wp.matrix(shape=(PATCHES, 4), dtype=float)
    for p in range(PATCHES):
        own[p] = read(image, x + float(p % PATCH_SIDE - PATCH), y + float(p // PATCH_SIDE - PATCH))
    total = wp.vec4f()
    weights = wp.float32(0.0)
    for k in range(CANDIDATES):
        u = x + float(k % SEARCH_SIDE - SEARCH)
        v = y + float(k // SEARCH_SIDE - SEARCH)
        distance = wp.float32(0.0)
        for p in range(PATCHES):
            other = read(image, u + float(p % PATCH_SIDE - PATCH), v + float(p // PATCH_SIDE - PATCH))
            distance += squared(other, own[p])
        weight = wp.exp(-distance * SHARPNESS)
        total += weight * read(image, u, v)
        weights += weight
    out[row, column] = total / weights


@function
def pair(f: float):
    """The weights of two linear reads, and their distances."""
    a = (1.0 - f) * (1.0 - f) * (1.0 - f) / 6.0
    b = (4.0 + 3.0 * f * f * f - 6.0 * f * f) / 6.0
    c = (1.0 + 3.0 * (f + f * f - f * f * f)) / 6.0
    d = f * f * f / 6.0
    return a + b, c + d, b / (a + b) - 0.5, d / (c + d) + 1.5


def bicubic(image: Any, out: Any):
    row, column = pixel(wp.tid(), out.shape[1])
    x = (float(column) + 0.5) / 2.0 - 0.5
    y = (float(row) + 0.5) / 2.0 - 0.5
    left = wp.floor(x)
    top = wp.floor(y)
    a0, a1, x0, x1 = pair(x - left)
    b0, b1, y0, y1 = pair(y - top)
    upper = a0 * read(image, left + x0, top + y0) + a1 * read(image, left + x1, top + y0)
    lower = a0 * read(image, left + x0, top + y1) + a1 * read(image, left + x1, top + y1)
    out[row, column] = b0 * upper + b1 * lower


def blend(a: Any, b: Any, mask: Any, p: Any, out: Any):
    row, column = pixel(wp.tid(), out.shape[1])
    height = float(out.shape[0])
    width = float(out.shape[1])
    x = float(column) + 0.5
    y = float(row) + 0.5
    angle = number(p, 0)
    power = number(p, 1)
    c = wp.cos(angle)
    s = wp.sin(angle)
    u = x / width - 0.5
    v = y / height - 0.5
    turned_x = (u * c - v * s + 0.5) * width
    turned_y = (v * c + u * s + 0.5) * height
    share = shade(mask, turned_x, turned_y)
    m = share * read(a, turned_x, turned_y) + (1.0 - share) * read(b, x, y)
    out[row, column] = wp.vec4f(wp.pow(m[0], power), wp.pow(m[1], power), wp.pow(m[2], power), wp.pow(m[3], power))


def morph(a: Any, b: Any, there: Any, back: Any, time: Any, out: Any):
    row, column = pixel(wp.tid(), out.shape[1])
    x = float(column) + 0.5
    y = float(row) + 0.5
    rest = 1.0 - time
    f = there[row, column]
    g = back[row, column]
    first = read(a, x + time * f[0], y + time * f[1])
    second = read(b, x + rest * g[0], y + rest * g[1])
    out[row, column] = rest * first + time * second


def tanh(image: Any, out: Any):
    row, column = pixel(wp.tid(), out.shape[1])
    height = float(out.shape[0])
    width = float(out.shape[1])
    u = float(column) / width
    v = float(row) / height
    a = read(image, (0.9 * u + 0.1 * v) * width, (0.95 * v + 0.02) * height)
    out[row, column] = wp.vec4f(wp.tanh(a[0]), wp.tanh(a[1]), wp.tanh(a[2]), wp.tanh(a[3]))


def volume(density: Any, colors: Any, out: Any):
    row, column = pixel(wp.tid(), out.shape[1])
    u = (float(column) + 0.5) / float(out.shape[1])
    v = (float(row) + 0.5) / float(out.shape[0])
    steps = density.depth
    color = wp.vec3f()
    alpha = wp.float32(0.0)
    k = wp.int32(0)
    while k < steps and alpha < 0.95:
        z = (float(k) + 0.5) / float(steps)
        emitted = wp.texture_sample(
            colors, wp.texture_sample(density, 0.9 * u + 0.1 * z, v, z, dtype=float), dtype=wp.vec4f
        )
        absorbed = emitted[3] * (1.0 - alpha)
        color += absorbed * wp.vec3f(emitted[0], emitted[1], emitted[2])
        alpha += absorbed
        k += 1
    out[row, column] = wp.vec4f(color[0], color[1], color[2], alpha)


# Other kernels


def images(batch: Any, angles: Any, out: Any):
    thread = wp.tid()
    area = out.shape[2] * out.shape[3]
    image = thread // area
    row, column = pixel(thread % area, out.shape[3])
    u = (float(column) + 0.5) / float(out.shape[3]) - 0.5
    v = (float(row) + 0.5) / float(out.shape[2]) - 0.5
    c = wp.cos(angles[image])
    s = wp.sin(angles[image])
    color = wp.texture_sample(batch[image], c * u - s * v + 0.5, s * u + c * v + 0.5, dtype=wp.vec4f)
    out[image, 0, row, column] = wp.bfloat16((color[0] - 0.5) / 0.2)
    out[image, 1, row, column] = wp.bfloat16((color[1] - 0.4) / 0.3)
    out[image, 2, row, column] = wp.bfloat16((color[2] - 0.3) / 0.25)


@function
def texel(values: wp.array3d[wp.vec4f], i: int, j: int, k: int):
    """A texel, or zeros outside."""
    height = values.shape[0]
    width = values.shape[1]
    value = values[wp.clamp(j, 0, height - 1), wp.clamp(i, 0, width - 1), k]
    return wp.where(i >= 0 and i < width and j >= 0 and j < height, value, wp.vec4f())


def attention(values: Any, locations: Any, weights: Any, out: Any):
    """A thread has four channels of a head of a query."""
    query, head, part = wp.tid()
    k = head * VECTORS + part
    total = wp.vec4f()
    for point in range(POINTS):
        at = locations[query, head, point]
        x = at[0] * float(values.shape[1]) - 0.5
        y = at[1] * float(values.shape[0]) - 0.5
        i = int(wp.floor(x))
        j = int(wp.floor(y))
        u = x - wp.floor(x)
        v = y - wp.floor(y)
        upper = wp.lerp(texel(values, i, j, k), texel(values, i + 1, j, k), u)
        lower = wp.lerp(texel(values, i, j + 1, k), texel(values, i + 1, j + 1, k), u)
        total += weights[query, head, point] * wp.lerp(upper, lower, v)
    out[query, head, part] = total


@function
def vertex(i: int, j: int, k: int, size: int, rows: int, is_hashed: bool):
    """The row of a vertex in the table of a level."""
    place = wp.uint32(i + size * (j + size * k))
    if is_hashed:
        place = wp.uint32(i) ^ (wp.uint32(FIRST_PRIME) * wp.uint32(j)) ^ (wp.uint32(SECOND_PRIME) * wp.uint32(k))
    return int(place % wp.uint32(rows))


@function
def rectified(x: float):
    return wp.max(x, 0.0)


@function
def copied(x: float):
    return x


@functools.cache
def network(grid: jt.nn.MultiresolutionGrid) -> Callable[..., Any]:
    """The kernel of all samples: what the network makes of the features there. A block multiplies matrices."""
    scales, sizes, rows, hashed = grid.scales, grid.resolutions, grid.table_sizes, grid.hashed
    before = [sum(rows[:level]) for level in range(LEVELS)]

    def samples(table: Any, hidden: Any, last: Any, found: Any):
        step, row, column = wp.tid()
        at = wp.vec3f(
            (float(column) + 0.5) / float(found.shape[2]),
            (float(row) + 0.5) / float(found.shape[1]),
            (float(step) + 0.5) / float(STEPS),
        )
        features = wp.vector(length=FEATURES, dtype=float)
        for level in range(LEVELS):
            place = wp.static(scales[level]) * at + wp.vec3f(0.5)
            x = wp.floor(place[0])
            y = wp.floor(place[1])
            z = wp.floor(place[2])
            total = wp.vec2f()
            for corner in range(8):
                i = corner & 1
                j = (corner >> 1) & 1
                k = corner >> 2
                # The weight of a vertex falls from 1 to 0 along each axis.
                a = 1.0 - wp.abs(place[0] - x - float(i))
                b = 1.0 - wp.abs(place[1] - y - float(j))
                c = 1.0 - wp.abs(place[2] - z - float(k))
                index = vertex(
                    int(x) + i,
                    int(y) + j,
                    int(z) + k,
                    wp.static(sizes[level]),
                    wp.static(rows[level]),
                    wp.static(hashed[level]),
                )
                total += a * b * c * table[wp.static(before[level]) + index]
            features[2 * level] = total[0]
            features[2 * level + 1] = total[1]
        first = wp.tile_transpose(wp.tile_load(hidden, shape=(FEATURES, HIDDEN)))
        second = wp.tile_transpose(wp.tile_load(last, shape=(HIDDEN, 4)))
        # Warp 1.19 has derivatives of `tile` and `untile` in registers alone, and multiplies in shared memory.
        inner = wp.tile_map(rectified, wp.tile_matmul(first, wp.tile_map(copied, wp.tile(features))))
        outer = wp.untile(wp.tile_map(copied, wp.tile_matmul(second, inner)))
        found[step, row, column] = wp.vec4f(outer[0], outer[1], outer[2], outer[3])

    return samples


def radiance(found: Any, out: Any):
    """The light of a ray. Its loop is unrolled: a derivative in reverse mode needs what each step found."""
    row, column = pixel(wp.tid(), out.shape[1])
    light = wp.vec3f()
    passed = wp.float32(1.0)
    for step in range(STEPS):
        f = found[step, row, column]
        opacity = 1.0 - wp.exp(-wp.log(1.0 + wp.exp(f[3])) / float(STEPS))
        color = wp.vec3f(1.0 / (1.0 + wp.exp(-f[0])), 1.0 / (1.0 + wp.exp(-f[1])), 1.0 / (1.0 + wp.exp(-f[2])))
        light = light + passed * opacity * color
        passed = passed * (1.0 - opacity)
    out[row, column] = light


# What is launched


class Launch(NamedTuple):
    """A launch of a kernel, whose last argument is what it writes."""

    kernel: Callable[..., Any]
    shape: Sequence[int] | int
    arguments: Sequence[Any]


def array(a: np.ndarray, moving: bool) -> Any:
    """An array of vectors of the last axis."""
    channels = a.shape[-1]
    if channels == 1:
        return wp.array(a[..., 0], dtype=float, requires_grad=moving)
    return wp.array(a, dtype=wp.types.vector(length=channels, dtype=float), requires_grad=moving)


def texture(a: np.ndarray, filter_mode: Any, normalized: bool) -> Any:
    """Images of 3 channels have a fourth: a texture unit has no 3."""
    if a.shape[-1] == 3:
        a = np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, 1)])
    kind = getattr(wp, f"Texture{a.ndim - 1}D")
    return kind(np.ascontiguousarray(a), filter_mode=filter_mode, normalized_coords=normalized)


def result(shape: Sequence[int], dtype: Any, gradients: bool) -> Any:
    return wp.empty(tuple(shape), dtype=dtype, requires_grad=gradients)


def of_pixels(name: str, program: Program, gradients: bool) -> list[Launch]:
    """The kernel of a program with a thread for each pixel."""
    mode = wp.TextureFilterMode.CLOSEST if name in OF_POINTS else wp.TextureFilterMode.LINEAR
    mapped = program.in_axes or (None,) * len(program.args)
    given: list[Any] = []
    for k, (a, axis) in enumerate(zip(map(np.asarray, program.args), mapped)):
        if a.ndim == 0:
            given.append(float(a))
        elif a.ndim == 1:
            given.append(wp.array(a, dtype=float, requires_grad=gradients))
        elif axis is None and not gradients:
            given.append(texture(a, mode, normalized=name == "volume"))
        else:
            given.append(array(a, gradients and k in program.wrt))
    out = result(program.shape, float if name in OF_ONE_CHANNEL else wp.vec4f, gradients)
    return [Launch(PIXELS[name], math.prod(program.shape), [*given, out])]


def of_images(program: Program) -> list[Launch]:
    batch, angles = program.args
    # The arguments keep the textures alive, of which the array has handles alone.
    textures = [texture(image, wp.TextureFilterMode.LINEAR, normalized=True) for image in batch]
    handles = wp.array(textures, dtype=wp.Texture2D)
    handles.textures = textures
    out = result((len(batch), 3, *program.shape), wp.bfloat16, False)
    return [Launch(images, len(batch) * math.prod(program.shape), [handles, wp.array(angles, dtype=float), out])]


def of_attention(program: Program, gradients: bool) -> list[Launch]:
    values, locations, weights = program.args
    height, width, heads, depth = values.shape
    given = [
        array(values.reshape(height, width, heads * depth // 4, 4), gradients),
        array(locations, gradients),
        wp.array(weights, dtype=float, requires_grad=gradients),
    ]
    shape = (*program.shape, VECTORS)
    return [Launch(attention, shape, [*given, result(shape, wp.vec4f, gradients)])]


def of_radiance_field(program: Program, gradients: bool) -> list[Launch]:
    table, *weights = program.args
    grids = (jt.nn.MultiresolutionGrid(num_levels=LEVELS, log2_hashmap_size=size) for size in (8, 14))
    grid = next(grid for grid in grids if sum(grid.table_sizes) == len(table))
    matrices = [wp.array(a, dtype=float, requires_grad=gradients) for a in weights]
    found = result((STEPS, *program.shape), wp.vec4f, gradients)
    out = result(program.shape, wp.vec3f, gradients)
    return [
        Launch(network(grid), found.shape, [array(table, gradients), *matrices, found]),
        Launch(radiance, math.prod(program.shape), [found, out]),
    ]


PIXELS: dict[str, Callable[..., Any]] = {
    kernel.__name__: kernel
    for kernel in (sobel, bilateral, median, nonlocal_means, bicubic, blend, morph, tanh, volume)
}
OTHERS: dict[str, Callable[..., list[Launch]]] = {
    "images": lambda program, _: of_images(program),
    "attention": of_attention,
    "radiance_field": of_radiance_field,
}
# The programs whose reads are of single texels, and those whose results have one channel.
OF_POINTS, OF_ONE_CHANNEL = ("sobel", "bilateral", "median", "nonlocal_means"), ("sobel", "median")


def typed(kernel: Callable[..., Any], arguments: Sequence[Any], gradients: bool) -> Any:
    """The kernel for arguments of these types."""
    kinds = [
        wp.array(dtype=a.dtype, ndim=a.ndim) if isinstance(a, wp.array) else float if isinstance(a, float) else type(a)
        for a in arguments
    ]
    names = kernel.__code__.co_varnames[: len(kinds)]
    kernel.__annotations__ = dict(zip(names, kinds, strict=True))
    how = {"enable_backward": gradients, "grid_stride": False, "module": "unique", "module_options": OPTIONS}
    return wp.kernel(**how)(kernel)


def warp(name: str, program: Program, gradients: bool) -> Run | None:
    """The program, or its gradients along ones, where there is a kernel for it and Warp is installed."""
    if name not in {*PIXELS, *OTHERS} or not on_gpu() or not wp:
        return None
    if any(n % SIDE for n in program.shape) and name != "attention":
        return None  # squares would not fill it
    wp.config.log_level = wp.LOG_WARNING
    launches = OTHERS[name](program, gradients) if name in OTHERS else of_pixels(name, program, gradients)
    out = launches[-1].arguments[-1]
    if gradients:
        moving = [launches[0].arguments[k] for k in program.wrt]
        out.retain_grad = True
        out.grad.fill_(1.0)
        shapes = [np.shape(program.args[k]) for k in program.wrt]
    else:
        moving, shapes = [], [jax.eval_shape(program.fused, *program.args).shape]

    @functools.cache
    def graph() -> Any:
        """What is launched each time. It is compiled by the first run."""
        kernels = [typed(kernel, arguments, gradients) for kernel, _, arguments in launches]

        def forward() -> None:
            for kernel, (_, shape, arguments) in zip(kernels, launches):
                wp.launch(kernel, shape, inputs=arguments[:-1], outputs=arguments[-1:], block_dim=BLOCK)

        with wp.Tape() as tape:
            forward()

        def backward() -> None:
            # Warp adds derivatives to what is there.
            for a in moving:
                a.grad.zero_()
            tape.backward()

        run = backward if gradients else forward
        run()
        with wp.ScopedCapture() as capture:
            run()
        return capture.graph

    def start() -> Any:
        wp.capture_launch(graph())
        return [a.grad for a in moving] if gradients else [out]

    def wait(found: Any) -> Any:
        wp.synchronize_device()
        return found

    def arrays(found: Any) -> Any:
        given = tuple(jnp.asarray(a.numpy()).reshape(shape) for a, shape in zip(found, shapes, strict=True))
        return given if gradients else given[0]

    return Run(start, wait, arrays)
