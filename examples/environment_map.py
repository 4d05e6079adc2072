"""An environment in a cubemap, and three spheres that reflect it: polished, satin and dull.

A reflection is one read in the mirrored direction. A rough surface averages the light of a cone of directions. The
texels of a coarser mip level are such averages, so that roughness is a level of detail: here 0, 3 and 5. Averages are
taken of linear light, before it is converted for the display. Therefore the sun, far brighter than white, stays bright
where it is spread out. Below each sphere stands the panorama of the level that it reads.

`--draw faces` draws the six faces with their axes instead, and `--draw seams` the corner of a small cubemap, where
three faces meet: the texels, each face filtered alone, and all faces filtered across the seams.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import INK, Panel, font, save, sheet
from PIL import Image, ImageDraw

import jaxtex as jt

Vector = tuple[jax.Array, jax.Array, jax.Array]

FACES = ("+x", "-x", "+y", "-y", "+z", "-z")
# The faces on a sheet, row and column: neighbors meet as they do on the cube.
SHEET = {"+y": (0, 1), "-x": (1, 0), "+z": (1, 1), "+x": (1, 2), "-z": (1, 3), "-y": (2, 1)}
DIRECTIONS = ("(1, -t, -s)", "(-1, -t, s)", "(s, 1, t)", "(s, -1, -t)", "(s, -t, 1)", "(-s, -t, -1)")
SUN = (0.42, 0.4, -0.81)
# Center, level of detail, and the color of light that meets the metal head-on.
SPHERES = {
    "polished": ((-2.8, 0.0, 7.0), 0.0, (0.95, 0.93, 0.9)),
    "satin": ((0.0, 0.0, 7.0), 4.0, (1.0, 0.78, 0.4)),
    "dull": ((2.8, 0.0, 7.0), 6.0, (0.97, 0.6, 0.48)),
}
TRILINEAR = jt.Sampler(mipmap_filter_mode="linear")


def face_directions(size: int) -> Vector:
    """The direction of every texel of a cubemap: three arrays (6, size, size)."""
    along = (jnp.arange(size) + 0.5) * (2 / size) - 1
    t, s = jnp.meshgrid(along, along, indexing="ij")
    one = jnp.ones_like(s)
    faces = (one, -t, -s), (-one, -t, s), (s, one, t), (s, -one, -t), (s, -t, one), (-s, -t, -one)
    x, y, z = (jnp.stack(component) for component in zip(*faces))
    return x, y, z


def dot(a, b) -> jax.Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def normalized(v) -> Vector:
    length = jnp.sqrt(dot(v, v))
    return v[0] / length, v[1] / length, v[2] / length


def blend(a, b, amount: jax.Array) -> jax.Array:
    """The color `a` where `amount` is 0, the color `b` where it is 1, and a blend between."""
    amount = jnp.clip(amount, 0, 1)[..., None]
    return jnp.asarray(a) * (1 - amount) + jnp.asarray(b) * amount


@jax.jit
def light(x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
    """The light from a direction: a sky with a sun, hills, and a checkered plain, in linear colors."""
    x, y, z = normalized((x, y, z))
    sky = blend((0.85, 0.9, 0.95), (0.1, 0.28, 0.7), jnp.abs(y) ** 0.55)
    toward = dot((x, y, z), normalized(SUN))
    glow = jnp.maximum(toward, 0)[..., None]
    sky = sky + glow**8 * jnp.array((0.3, 0.2, 0.08)) + glow**300 * jnp.array((1.6, 1.3, 0.8))
    sky = jnp.where(toward[..., None] > 0.9988, jnp.array((7.0, 6.0, 4.5)), sky)

    azimuth = jnp.arctan2(x, z)
    ridge = 0.07 + 0.035 * jnp.sin(3 * azimuth + 1) + 0.02 * jnp.sin(7 * azimuth) + 0.01 * jnp.sin(17 * azimuth + 2)
    hills = blend((0.1, 0.2, 0.12), (0.3, 0.42, 0.5), y / 0.12)

    below = jnp.maximum(-y, 1e-3)
    checks = (jnp.floor(x / below * 1.5) + jnp.floor(z / below * 1.5)) % 2
    plain = blend((0.75, 0.7, 0.62), (0.2, 0.08, 0.05), checks)
    plain = blend((0.45, 0.42, 0.38), plain, (below - 0.03) / 0.1)
    return jnp.where(y[..., None] < 0, plain, jnp.where((y < ridge)[..., None], hills, sky))


@functools.partial(jax.jit, static_argnames=("size", "finer"))
def environment(size: int, finer: int = 3) -> jt.Texture:
    """The light as a cubemap with faces of `size` x `size` texels, with its mip chain."""
    fine = lambda direction: light(*direction).reshape(size, finer, size, finer, 3).mean(axis=(1, 3))
    return jt.build_mipmaps(jt.cubemap(jax.lax.map(fine, face_directions(size * finer))))


@jax.jit
def look(texture: jt.Texture, x: jax.Array, y: jax.Array) -> jax.Array:
    """The light through the points (x, y) of a screen at z = 1, x to the right and y up."""
    ray = normalized((x, y, jnp.ones_like(x)))
    colors = jt.sample(texture, ray, TRILINEAR, lod=1.5)  # out of focus
    for center, lod, tint in SPHERES.values():
        middle = dot(ray, center)
        depth = middle**2 - dot(center, center) + 1
        hit = depth > 0
        away = middle - jnp.sqrt(jnp.where(hit, depth, 0))
        normal = tuple(r * away - c for r, c in zip(ray, center))
        facing = dot(ray, normal)
        mirrored = tuple(r - 2 * facing * n for r, n in zip(ray, normal))
        grazing = jnp.clip(1 + facing, 0, 1) ** 5  # Schlick: at a grazing angle every metal is white
        seen = jt.sample(texture, mirrored, TRILINEAR, lod=lod) * blend(tint, (1.0, 1.0, 1.0), grazing)
        colors = jnp.where(hit[..., None], seen, colors)
    return colors


def spheres(texture: jt.Texture, width: int, height: int, finer: int = 3) -> Image.Image:
    """The spheres in front of the environment, with `finer` x `finer` rays per pixel."""
    along = lambda n: (np.arange(n * finer, dtype=np.float32) + 0.5) / finer - n / 2
    x, y = along(width)[None, :], -along(height)[:, None]
    scale = 1.2 / width
    colors = to_bytes(look(texture, *np.broadcast_arrays(x * scale, y * scale)))
    return Image.fromarray(colors).reduce(finer)


def panorama(texture: jt.Texture, lod: float, width: int) -> Image.Image:
    """All directions at a level of detail: longitude to the right and latitude up, with -z in the middle."""
    azimuth = ((np.arange(width) + 0.5) / width * 2 - 1)[None, :] * np.pi
    height = (0.5 - (np.arange(width // 2) + 0.5) / (width // 2))[:, None] * np.pi
    around = np.cos(height)
    rays = np.broadcast_arrays(-around * np.sin(azimuth), np.sin(height), -around * np.cos(azimuth))
    return Image.fromarray(to_bytes(jt.sample(texture, tuple(map(np.float32, rays)), TRILINEAR, lod=lod)))


def with_levels(size: int, width: int) -> Image.Image:
    """Each sphere above the level of the cubemap that it reads; `width` is that of all spheres."""
    texture, side = environment(size), width // len(SPHERES)
    picture = spheres(texture, width, side)
    crops = [picture.crop((k * side, 0, (k + 1) * side, side)) for k in range(len(SPHERES))]
    rows = [], []
    for crop, (name, (_, lod, _)) in zip(crops, SPHERES.items()):
        texels = max(1, size >> int(lod))
        rows[0].append(Panel(f"{name}: lod={lod:g}", crop))
        rows[1].append(Panel(f"level {lod:g}: {texels} x {texels}", panorama(texture, lod, side)))
    return sheet(rows)


def to_bytes(linear: jax.Array) -> np.ndarray:
    """Linear colors as sRGB bytes; values above white are compressed."""
    c = np.asarray(linear)
    c = np.where(c < 0.6, c, 0.6 + 0.4 * np.tanh((c - 0.6) / 0.8))
    return np.uint8(np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** (1 / 2.4) - 0.055) * 255 + 0.5)


def faces(size: int) -> Image.Image:
    """The six faces in a cross, each with its name, its number, its axes and the direction of (s, t)."""
    levels = to_bytes(environment(size).levels[0])
    cross = Image.new("RGB", (4 * size, 3 * size), "white")
    pen, unit = ImageDraw.Draw(cross), size / 20
    words = {"fill": "white", "font": font(2.2 * unit), "anchor": "mm", "stroke_width": 3, "stroke_fill": INK}
    for number, name in enumerate(FACES):
        top, left = (size * k for k in SHEET[name])
        cross.paste(Image.fromarray(levels[number]), (left, top))
        pen.rectangle((left, top, left + size - 1, top + size - 1), outline="white", width=2)
        corner = np.array([left, top]) + 2 * unit
        for along, word in zip(unit * np.eye(2), "st"):
            tip, aside = corner + 5 * along, 0.6 * along[::-1]
            for color, width in ((INK, 7), ("white", 3)):
                pen.line([*corner, *tip], color, width)
            pen.polygon([tuple(tip + 1.4 * along), tuple(tip + aside), tuple(tip - aside)], "white", INK)
            pen.text(tuple(tip + 2.6 * along), word, **words)
        plate = left + 3 * unit, top + 11.5 * unit, left + 17 * unit, top + 18.5 * unit
        pen.rounded_rectangle(plate, unit, INK)
        pen.text(
            (left + 10 * unit, top + 15 * unit), f"face {number}: {name}\n{DIRECTIONS[number]}", align="center", **words
        )
    return cross


def seams(size: int) -> Image.Image:
    """The corner of a cubemap with faces of 4 x 4 texels, seen from its center, with three samplers."""
    hues = np.array([[0.9, 0.3, 0.12], [0.5] * 3, [0.25, 0.7, 0.3], [0.5] * 3, [0.15, 0.35, 0.9], [0.5] * 3])
    shade = 0.1 + 0.9 * np.asarray(jax.random.uniform(jax.random.key(2), (6, 4, 4, 1)))
    texture = jt.cubemap(np.float32(hues[:, None, None] * shade))
    along = ((np.arange(size) + 0.5) * (2 / size) - 1) * 0.8
    right, up = along[None, :, None], -along[:, None, None]
    ray = 1 + right * np.array((1, 0, -1)) / 2**0.5 * 1.2 + up * np.array((-1, 2, -1)) / 6**0.5 * 1.2
    ray = tuple(np.float32(np.moveaxis(ray, -1, 0)))
    row = []
    for title, note, sampler in (
        ("the texels", 'filter_mode="point"', jt.Sampler(filter_mode="point")),
        ("each face alone", "seamless_cubemap=False", jt.Sampler(seamless_cubemap=False)),
        ("across the seams", "the default", jt.Sampler()),
    ):
        row.append(Panel(title, to_bytes(jt.sample(texture, ray, sampler)), note))
    return sheet([row])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw spheres that reflect an environment, or its cubemap.")
    parser.add_argument("--draw", choices=("spheres", "faces", "seams"), default="spheres")
    parser.add_argument("--size", type=int, help="the width of a face in texels, or of a panel of seams in pixels")
    parser.add_argument("--width", type=int, default=900, help="of the picture of spheres")
    parser.add_argument("--out", type=Path, default=Path("environment_map.png"))
    args = parser.parse_args(argv)

    if args.draw == "spheres":
        picture = with_levels(args.size or 512, args.width)
    else:
        picture = faces(args.size or 200) if args.draw == "faces" else seams(args.size or 290)
    save(picture, args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
