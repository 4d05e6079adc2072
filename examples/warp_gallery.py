"""Every warp of `jaxtex.warp`, one panel each: of photographs, a panorama, and a brick wall for its straight lines.

Each panel is one differentiable call on the whole image. The panorama is rendered: it shows the sky, the hills and the
plain of `environment_map.py`. The program prints the time of a call, without the time to compile it.
"""

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from environment_map import light
from environment_map import to_bytes as displayed
from panels import DATA, Panel, save, sheet
from PIL import Image

from jaxtex import ndimage as jn
from jaxtex import warp as jw

PHOTOGRAPH = DATA / "chelsea.jpg"
COLUMNS = 3
# The center and the half axes of the rim of the cup in coffee.png, in widths and heights of the photograph.
CUP = ((0.485, 0.285), (0.205, 0.25))
CROSS = {2: (0, 1), 1: (1, 0), 4: (1, 1), 0: (1, 2), 5: (1, 3), 3: (2, 1)}  # row and column of the faces of the cube


def size(image: jax.Array) -> tuple[int, int]:
    height, width, _ = image.shape
    return width, height


def pixels(image: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The centers of the pixels, x and y."""
    width, height = size(image)
    return jnp.arange(width)[None, :] + 0.5, jnp.arange(height)[:, None] + 0.5


def at(image: jax.Array, *points: tuple[float, float]) -> np.ndarray:
    """Points in pixels, (P, 2), from points in widths and heights of the image."""
    return np.array(points) * size(image)


def camera(image: jax.Array) -> jax.Array:
    """A wide-angle camera centered on the image."""
    width, height = size(image)
    return jnp.array([[0.6 * width, 0, width / 2], [0, 0.6 * width, height / 2], [0, 0, 1]])


def thumbnail(image: jax.Array) -> jax.Array:
    width, height = size(image)
    small = jw.resize(image, (height // 2, width // 2))
    return jnp.pad(small, ((height // 4,) * 2, (width // 4,) * 2, (0, 0)))[:height, :width]


def sheared(image: jax.Array) -> jax.Array:
    _, height = size(image)
    return jw.warp_affine(image, jnp.array([[1, -0.35, 0.175 * height], [0.15, 0.9, 0]]))


def tilted(image: jax.Array) -> jax.Array:
    """The homography that maps the corners of the image to a trapezoid: eight equations, eight numbers."""
    source, target = at(image, (0, 0), (1, 0), (1, 1), (0, 1)), at(image, (0.25, 0.12), (0.8, 0.2), (1, 0.95), (0, 0.9))
    rows = []
    for (x, y), (u, v) in zip(source, target):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    matrix = np.append(np.linalg.solve(np.array(rows), target.ravel()), 1.0).reshape(3, 3)
    return jw.warp_perspective(image, jnp.float32(matrix), antialias=True)


def swirl(x: jax.Array, y: jax.Array, width: int, height: int) -> tuple[jax.Array, jax.Array]:
    """Points rotated about the center; closer points by larger angles."""
    right, down = x - width / 2, y - height / 2
    turn = 2.5 * jnp.exp(-(right**2 + down**2) / (0.3 * width) ** 2)
    return (
        width / 2 + right * jnp.cos(turn) - down * jnp.sin(turn),
        height / 2 + right * jnp.sin(turn) + down * jnp.cos(turn),
    )


def swirled(image: jax.Array) -> jax.Array:
    width, height = size(image)
    return jw.resample(image, functools.partial(swirl, width=width, height=height), address_mode="mirror")


def rippled(image: jax.Array) -> jax.Array:
    x, y = pixels(image)
    width, _ = size(image)
    away = jnp.hypot(x - x.mean(), y - y.mean()) / width
    grow = 1 + 0.06 * jnp.sin(60 * away)
    return jw.remap(image, (x.mean() + (x - x.mean()) * grow, y.mean() + (y - y.mean()) * grow), address_mode="mirror")


def waved(image: jax.Array) -> jax.Array:
    x, y = pixels(image)
    width, _ = size(image)
    return jw.warp_flow(image, (0.03 * width * jnp.sin(18 * y / width), 0.02 * width * jnp.sin(14 * x / width)))


def on_cup(image: jax.Array) -> jax.Array:
    """1 on the cup's rim and in it, 0 elsewhere."""
    (x, y), (width, height) = pixels(image), size(image)
    (right, down), (wide, high) = CUP
    return jnp.where(((x / width - right) / wide) ** 2 + ((y / height - down) / high) ** 2 < 1, 1.0, 0.0)


def lifted(image: jax.Array) -> jax.Array:
    """The cup moved right, over the pixels there, which are less important. It leaves a hole."""
    width, _ = size(image)
    cup = on_cup(image)
    return jw.forward_warp(image, (cup * (0.22 * width), cup * (0.06 * width)), 20 * cup)


def bent(image: jax.Array) -> jax.Array:
    """The corners and the centers of the edges stay, and the center of the cup moves."""
    frame = [(x, y) for x in (0, 0.5, 1) for y in (0, 0.5, 1) if (x, y) != (0.5, 0.5)]
    source, target = (jnp.float32(at(image, *frame, middle)) for middle in ((0.48, 0.35), (0.62, 0.55)))
    return jw.thin_plate_spline(image, source, target)


def lens(warp: Callable[..., jax.Array], image: jax.Array) -> jax.Array:
    return warp(image, camera(image), jnp.array([-0.35, 0.06, 0.0, 0.0]))


def unfolded(image: jax.Array) -> jax.Array:
    """A panorama on the faces of a cube, which are drawn as a cross."""
    width, height = size(image)
    height = width * 2 // 3
    side = min(width // 4, height // 3)
    faces = jw.equirectangular_to_cubemap(image, side, antialias=True)
    sheet = jnp.full((height, width, 3), 255, image.dtype)
    left, top = (width - 4 * side) // 2, (height - 3 * side) // 2
    for face, (row, column) in CROSS.items():
        sheet = jax.lax.dynamic_update_slice(sheet, faces[face], (top + row * side, left + column * side, 0))
    return sheet


def room(image: jax.Array) -> jax.Array:
    """The panorama of a room whose walls, floor and ceiling show the photograph."""
    width, height = size(image)
    left = (width - height) // 2
    faces = jnp.broadcast_to(image[:, left : left + height], (6, height, height, 3))
    return jw.cubemap_to_equirectangular(faces, (width // 2, width), antialias=True)


def panorama(width: int) -> jax.Array:
    """The environment in all directions, with 3 x 3 rays per pixel; -z is in the middle."""
    fine = 3 * width
    azimuth = ((np.arange(fine) + 0.5) / fine * 2 - 1)[None, :] * np.pi
    up = (0.5 - (np.arange(fine // 2) + 0.5) / (fine // 2))[:, None] * np.pi
    rays = -np.cos(up) * np.sin(azimuth), np.sin(up), -np.cos(up) * np.cos(azimuth)
    colors = displayed(light(*map(np.float32, np.broadcast_arrays(*rays))))
    return jnp.asarray(np.asarray(Image.fromarray(colors).reduce(3)))


def photograph(name: Path, width: int) -> jax.Array:
    """The middle of a photograph, three units wide and two high."""
    pixels = np.asarray(Image.open(name).convert("RGB"))
    height = min(len(pixels), 2 * pixels.shape[1] // 3)
    top = (len(pixels) - height) // 2
    return jw.resize(jnp.asarray(pixels[top : top + height]), (2 * width // 3, width))


def tiled(image: jax.Array) -> jax.Array:
    theta = jnp.array([[[2.0, 0.6, 0.0], [-0.6, 2.0, 0.0]]])
    grid = jw.affine_grid(theta, size(image)[::-1])
    return jw.grid_sample(image[None], grid, padding_mode="reflection", data_format="NHWC")[0]


def indexed(image: jax.Array) -> jax.Array:
    """Each channel read as a periodic array, at indices y and x."""
    (x, y), (width, height) = pixels(image), size(image)
    places = [1.7 * y + 0.2 * height, 1.7 * x + 0.3 * width]
    read = lambda channel: jn.map_coordinates(channel, places, order=1, mode="grid-wrap")
    return jax.vmap(read, -1, -1)(image)


def zoomed(image: jax.Array) -> jax.Array:
    return jw.spatial_transform(image, jnp.array([[0.45, 0.12, 0.0], [-0.12, 0.45, -0.4]]))


CUP_IMAGE, WALL, PANORAMA = "coffee", "brick wall", "panorama"
# What the panels do not show the first photograph.
SOURCES = {
    "forward_warp": CUP_IMAGE,
    "thin_plate_spline": CUP_IMAGE,
    "distort": WALL,
    "undistort": WALL,
    "equirectangular_to_cubemap": PANORAMA,
}
PANELS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "resize, antialias": thumbnail,
    "rotate": lambda image: jw.rotate(image, angle=jnp.deg2rad(20.0), scale=0.85),
    "warp_affine": sheared,
    "warp_perspective": tilted,
    "spatial_transform": zoomed,
    "affine_grid, grid_sample": tiled,
    "map_coordinates": indexed,
    "resample, by a function": swirled,
    "remap": rippled,
    "warp_flow": waved,
    "forward_warp": lifted,
    "thin_plate_spline": bent,
    "equirectangular_to_cubemap": unfolded,
    "cubemap_to_equirectangular": room,
    "distort": functools.partial(lens, jw.distort),
    "undistort": functools.partial(lens, jw.undistort),
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Warp a photograph in every way.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--width", type=int, default=300, help="of each panel, in pixels")
    parser.add_argument("--out", type=Path, default=Path("warp_gallery.jpg"))
    args = parser.parse_args(argv)

    image = photograph(args.photograph, args.width)
    sources = {
        CUP_IMAGE: photograph(DATA / "coffee.png", args.width),
        WALL: photograph(DATA / "brick.png", args.width),
        PANORAMA: panorama(args.width),
    }
    panels = []
    for name, function in PANELS.items():
        compiled, source = jax.jit(function), sources.get(SOURCES.get(name), image)
        if name == "equirectangular_to_cubemap":
            panels.append(Panel("a panorama, rendered", source))
        if name == "distort":
            panels.append(Panel("a brick wall", source))
        panels.append(Panel(name, np.asarray(compiled(source))))
        if name == "distort":  # what comes next undoes it
            sources[WALL] = compiled(source)
        start = time.perf_counter()
        compiled(source).block_until_ready()
        print(f"{name:28} {1e3 * (time.perf_counter() - start):7.2f} ms")
    save(sheet([panels[start : start + COLUMNS] for start in range(0, len(panels), COLUMNS)]), args.out, quality=80)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
