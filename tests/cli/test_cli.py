"""The command line, in process on small images, against codecs and arithmetic of another kind."""

import itertools
import os
import subprocess
import sys
import types
from collections.abc import Callable, Container
from pathlib import Path

import imagecodecs
import jax
import numpy as np
import pytest
import tifffile
from PIL import Image

import jaxtex
from jaxtex import AddressMode, FilterMode
from jaxtex._jax.versions import NATIVE_ATOMICS
from jaxtex.cli import commands, jax_start, main, transforms
from jaxtex.cli.files import codecs
from jaxtex.cli.files.exif import ORIENTATION
from jaxtex.cli.files.metadata import Picture
from jaxtex.cli.jax_start import PACKAGES
from jaxtex.cli.options import ADDRESSES, FILTERS, WHOLE_TRANSFORMS, Options
from jaxtex.warp.sized import image as sized_image
from tests.cli.odd_files import photograph
from tests.support.tolerances import assert_close, assert_codes_close

HEIGHT, WIDTH = 6, 9
SRGB = b"\0" * 16 + b"RGB " + b"profile" * 20
GRAY = b"\0" * 16 + b"GRAY" + b"profile" * 20


def noise(channels: int, dtype: str = "uint8", height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Random pixels over the whole range of `dtype`; with alpha, some of them clear and some opaque."""
    random = np.random.default_rng(channels)
    top = np.iinfo(dtype).max
    pixels = random.integers(0, top, (height, width, channels), endpoint=True).astype(dtype)
    if channels in (2, 4):
        pixels[0, :, -1], pixels[1, :, -1], pixels[2, :, -1] = 0, top, 1
    return pixels


def save(path: Path, pixels: np.ndarray, **options) -> Path:
    """Writes an image: Pillow for 8 bits, else imagecodecs or tifffile."""
    bare = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    if path.suffix == ".webp":
        Image.fromarray(bare).save(path, lossless=True, exact=True, **options)
    elif pixels.dtype == np.uint8:
        Image.fromarray(bare).save(path, **options)
    elif path.suffix == ".png":
        path.write_bytes(imagecodecs.png_encode(bare))
    else:
        alpha = ["unassalpha"] if pixels.shape[-1] in (2, 4) else None
        tifffile.imwrite(path, bare, photometric="rgb" if bare.shape[2:] > (2,) else "minisblack", extrasamples=alpha)
    return path


def load(path: Path) -> np.ndarray:
    """Reads an image as (height, width, channels), PNG and TIFF of 8 bits by other codecs than wrote them."""
    if path.suffix == ".png":
        pixels = imagecodecs.png_decode(path.read_bytes())
    else:
        pixels = tifffile.imread(path) if path.suffix == ".tif" else np.asarray(Image.open(path))
    return pixels.reshape(*pixels.shape[:2], -1)


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of `main`."""
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def refused(capsys, *arguments: object, code: int = 2) -> str:
    """The one sentence with which a command line is refused; nothing else is printed."""
    found, out, err = run(capsys, *arguments)
    assert (found, out, err.count("\n")) == (code, "", 1), (arguments, err)
    assert err.startswith("jaxtex: error: ")
    return err.removeprefix("jaxtex: error: ")


def done(capsys, *arguments: object) -> str:
    """What a command line prints that ends well, without a note."""
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, ""), err
    return out


def failing_at(numbers: Container[int], error: BaseException, work: Callable | None) -> Callable:
    """`work`, whose calls of these numbers raise an error."""
    calls = itertools.count(1)

    def call(*arguments, **options):
        if next(calls) in numbers:
            raise error
        return work(*arguments, **options)

    return call


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def warped(tmp_path: Path, pixels: np.ndarray, *options: object, suffix: str = ".png") -> np.ndarray:
    """`pixels` after `jaxtex warp` with `options`, through files."""
    source, target = save(tmp_path / f"in{suffix}", pixels), tmp_path / f"out{suffix}"
    assert main(["warp", str(source), str(target), *map(str, options)]) == 0
    return load(target)


def bilinear(pixels: np.ndarray, back: np.ndarray, border: float) -> np.ndarray:
    """A bilinear read at every pixel's center mapped by `back`, in float64, with a border."""
    y, x = np.mgrid[: pixels.shape[0], : pixels.shape[1]] + 0.5
    x, y = np.einsum("ij,jhw->ihw", back, np.stack([x, y, np.ones_like(x)]))
    return bilinear_at(pixels, x, y, border)


def bilinear_at(pixels: np.ndarray, x: np.ndarray, y: np.ndarray, border: float) -> np.ndarray:
    """A bilinear read at points (x, y), in float64, with a border."""
    height, width = pixels.shape[:2]
    padded = np.pad(pixels.astype(float), ((1, 1), (1, 1), (0, 0)), constant_values=border)
    x, y = np.clip(x + 0.5, 0, width + 0.999), np.clip(y + 0.5, 0, height + 0.999)
    i, j = x.astype(int), y.astype(int)
    s, t = (x - i)[..., None], (y - j)[..., None]
    top = padded[j, i] * (1 - s) + padded[j, i + 1] * s
    return top * (1 - t) + (padded[j + 1, i] * (1 - s) + padded[j + 1, i + 1] * s) * t


# Without interpolation; and as the independent read has it.
POINT, TAP_BY_TAP = ("--filter", "point"), ("--address", "border", "--border-color", 40)

# Files

KINDS = ((".png", "uint8"), (".png", "uint16"), (".tif", "uint8"), (".tif", "uint16"), (".webp", "uint8"))


@pytest.mark.parametrize(("suffix", "dtype"), KINDS)
def test_lossless_formats_keep_every_bit(tmp_path, suffix, dtype):
    """What is read is what another codec wrote, and what is written, what another one reads."""
    for channels in (1, 2, 3, 4):
        pixels, path = noise(channels, dtype), tmp_path / f"out{suffix}"
        expected = pixels
        if suffix == ".webp" and channels < 3:  # WebP has no gray
            expected = np.concatenate([pixels[..., :1]] * 3 + [pixels[..., 1:]], axis=-1)
        picture = codecs.read_picture(save(path, pixels))
        np.testing.assert_array_equal(picture.pixels, expected)
        codecs.write_picture(path, Picture(pixels), Options())
        assert load(path).dtype == picture.pixels.dtype == dtype
        np.testing.assert_array_equal(load(path), expected)


def test_every_code_survives_filtering(tmp_path):
    """Of 16 bits, and of 8 bits beside every alpha; also in a pixel, a row and a column alone."""
    color, alpha = np.meshgrid(np.arange(256), np.arange(256))
    pixels, deep = np.uint8(np.stack([color, alpha], -1)), np.uint16(256 * color + alpha)[..., None]
    np.testing.assert_array_equal(warped(tmp_path, deep), deep)
    for part in (pixels, pixels[-1:, 9:10], pixels[-1:], pixels[:, 9:10]):
        np.testing.assert_array_equal(warped(tmp_path, part, "--filter", "cubic"), part)


def pillow_images():
    """Images of Pillow's modes, each with options to save it, and the pixels that it stands for."""
    gray, rgb = noise(1)[..., 0], noise(3)
    bits, clear = gray > 127, (rgb == rgb[0, 0]).all(axis=-1, keepdims=True)
    yield Image.fromarray(bits), {}, (bits * 255).astype(np.uint8)[..., None]
    pixels = np.stack([gray, np.where(gray == gray[0, 0], 0, 255)], axis=-1)
    yield Image.fromarray(gray), {"transparency": int(gray[0, 0])}, pixels
    pixels = np.concatenate([rgb, np.where(clear, 0, 255)], axis=-1)
    yield Image.fromarray(rgb), {"transparency": tuple(map(int, rgb[0, 0]))}, pixels
    index, palette = gray % 4, np.array([[0, 0, 0], [255, 0, 0], [10, 20, 30], [1, 2, 3]], np.uint8)
    image, alpha = Image.frombytes("P", (WIDTH, HEIGHT), index.tobytes()), np.array([0, 255, 128, 7], np.uint8)
    image.putpalette(palette.tobytes())
    yield image, {}, palette[index]
    yield image, {"transparency": alpha.tobytes()}, np.concatenate([palette, alpha[:, None]], axis=-1)[index]


def test_other_pixel_modes_become_plain_ones(tmp_path):
    for image, options, expected in pillow_images():
        image.save(tmp_path / "in.png", **options)
        np.testing.assert_array_equal(codecs.read_picture(tmp_path / "in.png").pixels, expected)
    Image.new("CMYK", (3, 2), (0, 255, 255, 0)).save(tmp_path / "in.tif")
    np.testing.assert_array_equal(codecs.read_picture(tmp_path / "in.tif").pixels, [[[255, 0, 0]] * 3] * 2)


TIFF_VARIANTS = (
    ({"planarconfig": "separate", "photometric": "rgb"}, 3, lambda p: p),
    ({"byteorder": ">", "photometric": "minisblack"}, 1, lambda p: p),
    ({"photometric": "miniswhite"}, 1, lambda p: np.iinfo(p.dtype).max - p),
    ({"photometric": "rgb", "extrasamples": ["unspecified"]}, 4, lambda p: p[..., :3]),  # an undeclared channel
    ({"photometric": "rgb", "compression": "zlib", "predictor": True}, 3, lambda p: p),
)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_variants_of_tiff(tmp_path, dtype):
    path, top = tmp_path / "in.tif", np.iinfo(dtype).max
    for options, channels, meaning in TIFF_VARIANTS:
        pixels = noise(channels, dtype)
        stored = np.moveaxis(pixels, -1, 0) if options.get("planarconfig") == "separate" else pixels
        tifffile.imwrite(path, stored[..., 0] if channels == 1 else stored, **options)
        picture = codecs.read_picture(path)
        np.testing.assert_array_equal(picture.pixels, meaning(pixels), str(options))
        assert bool(picture.notes) == ("extrasamples" in options)
    # Associated alpha is divided out: what was rounded is divided by a half.
    straight = np.full((2, 2, 4), (top, top // 2 + 1, 0, top // 2 + 1), dtype)
    stored = straight.copy()
    stored[..., :3] = np.rint(straight[..., :3] * ((top // 2 + 1) / top))
    tifffile.imwrite(path, stored, photometric="rgb", extrasamples=["assocalpha"])
    assert_close("rounded code", codecs.read_picture(path).pixels, straight, 2)


BREAKS = (
    lambda data: data[: len(data) // 2],
    lambda data: data[: len(data) // 10],
    lambda data: data[: len(data) // 2] + bytes(40) + data[len(data) // 2 + 40 :],
)


@pytest.mark.parametrize(("suffix", "dtype"), KINDS[:4])
def test_a_broken_file_is_one_sentence(tmp_path, capfd, suffix, dtype):
    """Also on the descriptor, to which C libraries write past Python."""
    path = tmp_path / f"in{suffix}"
    codecs.write_picture(path, Picture(noise(3, dtype, 30, 30)), Options())
    whole = path.read_bytes()
    for broken in BREAKS:
        path.write_bytes(broken(whole))
        assert refused(capfd, "warp", path, tmp_path / "out.png").startswith(f"cannot read {path}: ")


# What the first row and column of the stored array are: TIFF 6.0, tag 274.
UPRIGHT = {
    1: lambda p: p,
    2: np.fliplr,
    3: lambda p: np.rot90(p, 2),
    4: np.flipud,
    5: lambda p: p.swapaxes(0, 1),
    6: lambda p: np.rot90(p, -1),
    7: lambda p: np.rot90(p, 2).swapaxes(0, 1),
    8: np.rot90,
}


def test_exif_orientation_is_applied(tmp_path):
    pixels, deep, exif = np.asarray(photograph(3)), noise(3, "uint16"), Image.Exif()
    for orientation, upright in UPRIGHT.items():
        exif[ORIENTATION] = orientation
        for suffix in (".png", ".tif", ".jpg"):
            path = save(tmp_path / f"in{suffix}", pixels, exif=exif, quality=98, subsampling=0)
            off = codecs.read_picture(path).pixels.astype(int) - upright(pixels)
            assert np.abs(off).max() <= (suffix == ".jpg") * 19, (path, orientation)
        tags = [(ORIENTATION, "H", 1, orientation, True)]
        tifffile.imwrite(tmp_path / "in16.tif", deep, photometric="rgb", extratags=tags)
        np.testing.assert_array_equal(codecs.read_picture(tmp_path / "in16.tif").pixels, upright(deep))


# The format, the dtype, the channels, the profile, and whether it stays.
PROFILES = (
    *((".png", "uint8", 3, SRGB, True), (".png", "uint16", 4, SRGB, True), (".png", "uint16", 2, GRAY, True)),
    *((".tif", "uint8", 3, SRGB, True), (".tif", "uint16", 3, SRGB, True), (".png", "uint8", 1, SRGB, False)),
    *((".jpg", "uint8", 3, SRGB, True), (".jpg", "uint8", 1, GRAY, True)),
    *((".webp", "uint8", 3, SRGB, True), (".webp", "uint8", 1, GRAY, False)),
)


def test_a_color_profile_stays_if_it_fits(tmp_path):
    for suffix, dtype, channels, profile, kept in PROFILES:
        path = tmp_path / f"out{suffix}"
        codecs.write_picture(path, Picture(noise(channels, dtype), profile), Options())
        again = codecs.read_picture(path)
        assert again.icc == (profile if kept else None), (suffix, dtype, channels)
        if suffix == ".png":
            np.testing.assert_array_equal(again.pixels, noise(channels, dtype))


def test_what_a_format_cannot_hold_is_said(tmp_path):
    cases = ((".jpg", "uint8", 3, 0), (".jpg", "uint16", 1, 1), (".jpg", "uint16", 4, 2), (".webp", "uint16", 3, 1))
    for suffix, dtype, channels, notes in cases:
        half = np.full((HEIGHT, WIDTH, channels), np.iinfo(dtype).max // 2, dtype)
        assert len(codecs.write_picture(tmp_path / f"out{suffix}", Picture(half), Options())) == notes
        found = load(tmp_path / f"out{suffix}")
        assert_close("lossy file", found, np.full(found.shape, 64 if channels == 4 else 127), 1)


def test_one_of_several_pages_is_chosen(tmp_path, capsys):
    deep, pages = [noise(3, "uint16"), 65535 - noise(3, "uint16")], [noise(3), 255 - noise(3)]
    tifffile.imwrite(tmp_path / "in.tif", np.stack(deep), photometric="rgb")
    first, second = map(Image.fromarray, pages)
    first.save(tmp_path / "in.webp", save_all=True, append_images=[second], lossless=True)
    for name, stored in (("in.tif", deep), ("in.webp", pages)):
        for number, pixels in enumerate(stored, 1):
            done(capsys, "warp", tmp_path / name, tmp_path / "out.png", *POINT, "--page", number)
            np.testing.assert_array_equal(load(tmp_path / "out.png"), pixels)


def raising(error: BaseException) -> Callable:
    return failing_at(range(1, 99), error, None)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, capsys, monkeypatch):
    source, target = save(tmp_path / "in.png", noise(3)), save(tmp_path / "out.png", noise(1))
    before, full = target.read_bytes(), OSError("the disk is full")
    for owner, name, error, code in (
        (Image.Image, "save", full, 2),
        (os, "open", full, 2),
        (os, "replace", full, 2),
        (os, "replace", KeyboardInterrupt(), 130),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, raising(error))
            refused(capsys, "warp", source, target, *POINT, code=code)
        assert target.read_bytes() == before
        assert listing(tmp_path) == ["in.png", "out.png"]


def test_an_image_may_replace_itself_and_a_link_stays_a_link(tmp_path, capsys):
    source = save(tmp_path / "in.png", noise(3))
    link = tmp_path / "link.png"
    link.symlink_to(source)
    done(capsys, "warp", link, link, *POINT, "--translate", 1, 0, "--overwrite")
    assert link.is_symlink()
    np.testing.assert_array_equal(load(source)[:, 1:], noise(3)[:, :-1])


# Geometry


PADDINGS = {"border": "constant", "wrap": "wrap", "mirror": "symmetric", "reflect": "reflect"}
QUARTERS = {n: f"--rotate {90 * n} --size {'6x9' if n % 2 else '9x6'}" for n in (-1, 2, 5)}
# What warps make of noise that move it by whole pixels, by linear filters too.
EXACT = {
    **{options: lambda p, n=n: np.rot90(p, n) for n, options in QUARTERS.items()},
    f"{QUARTERS[5]} --filter point": np.rot90,
    **{
        f"--translate 3 -2 --address {address}": lambda p, mode=mode: np.pad(p, ((4, 4), (4, 4), (0, 0)), mode)[
            6:12, 1:10
        ]
        for address, mode in PADDINGS.items()
    },
    "--matrix 1 -1e-9 2 -0.0 1 -1 --filter point": lambda p: np.pad(p, ((0, 1), (2, 0), (0, 0)))[1:, :WIDTH],
    "--matrix 3 0 0 0 3 0 --size 27x18 --filter point": lambda p: p.repeat(3, 0).repeat(3, 1),
    "--scale 3 --translate 1 2 --expand --filter point": lambda p: np.pad(
        p.repeat(3, 0).repeat(3, 1), ((4, 0), (2, 0), (0, 0))
    ),
    "--compare --size 13x8 --filter point": lambda p: np.concatenate(
        [np.pad(p, ((1, 1), (0, 0), (0, 0))), np.pad(p, ((1, 1), (2, 2), (0, 0)))], axis=1
    ),
    "--perspective -20,-20:-18,-18 9,-20:11,-18 9,6:11,8 -20,6:-18,8 --filter point": lambda p: np.pad(
        p, ((2, 0), (2, 0), (0, 0))
    )[:HEIGHT, :WIDTH],
}


def test_moves_by_whole_pixels_are_exact(tmp_path):
    for options, expected in EXACT.items():
        out = warped(tmp_path, noise(3), *options.split())
        np.testing.assert_array_equal(out, expected(noise(3)), options)
    # A sphere goes on beyond its poles.
    pixels = noise(3)[:, :8]
    out = warped(tmp_path, pixels, "--translate", 3, 2, "--address", "sphere")
    around = np.concatenate([np.roll(pixels, 4, 1)[1::-1], pixels[:-2]])
    np.testing.assert_array_equal(out, np.roll(around, 3, 1))


TRANSFORMS = (
    (("--rotate", 30), transforms.rotation(-30)),
    (("--rotate", -7.5, "--scale", 0.8), transforms.rotation(7.5) / 0.8),
    (("--shear", 0.5), np.array([[1, -0.5], [0, 1]])),
    (("--shear", 0.5, "--rotate", 30), np.array([[1, -0.5], [0, 1]]) @ transforms.rotation(-30)),
    (("--scale", "3"), np.eye(2) / 3),
)


def test_transforms_agree_with_an_independent_bilinear_read(tmp_path):
    size, pixels = 12, noise(3, height=12, width=12)
    center, moved = np.full(2, size / 2), np.array([1.25, -0.5])
    for options, back in TRANSFORMS:
        matrix = np.column_stack([back, center - back @ (center + moved)])
        out = warped(tmp_path, pixels, *options, "--translate", *moved, *TAP_BY_TAP)
        assert_codes_close("point", out, bilinear(pixels, matrix, 40), 255 * size)


def test_a_cubic_overshoot_is_clipped(tmp_path):
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:, 4:] = 255
    out = warped(tmp_path, pixels, "--filter", "cubic", "--translate", 0.5, 0, "--address", "clamp")
    steps = 255 * np.array([0, 0, 0, 0, 0.5, 1, 1, 1])
    assert_close("rounded code", out[..., 0], [steps] * 8, 1)


# Color


def test_clear_pixels_leave_no_fringe(tmp_path):
    top = 65535
    pixels = np.zeros((8, 8, 4), np.uint16)
    pixels[:, :4] = (top, 0, 0, top)  # red
    pixels[:, 4:] = (0, top, 0, 0)  # green, not to be seen
    out = warped(tmp_path, pixels, "--filter", "cubic", "--rotate", 17, "--scale", 1.3)
    seen = out[..., 3] > 0
    assert (seen & (out[..., 3] < top)).any()  # there are soft edges
    np.testing.assert_array_equal(out[seen][:, :3], [(top, 0, 0)] * seen.sum())


BORDER_COLORS = (
    *((1, "uint8", "7", (7,)), (3, "uint8", "7", (7, 7, 7)), (4, "uint8", "7", (7, 7, 7, 255))),
    *((2, "uint8", "7,8", (7, 8)), (4, "uint8", "7,8", (7, 7, 7, 8)), (1, "uint8", "#404040", (64,))),
    *((3, "uint8", "1,2,3", (1, 2, 3)), (4, "uint8", "1,2,3", (1, 2, 3, 255)), (4, "uint8", "1,2,3,4", (1, 2, 3, 4))),
    *((3, "uint8", "#0a0B0c", (10, 11, 12)), (4, "uint8", "#0a0b0c0d", (10, 11, 12, 13))),
    *((3, "uint8", "1,2,3,255", (1, 2, 3)), (3, "uint16", "1,2,255", (257, 514, 65535))),
    (3, "uint16", "0.5,2,3", (128, 514, 771)),
)


def test_border_colors(tmp_path):
    for channels, dtype, text, texel in BORDER_COLORS:
        out = warped(tmp_path, noise(channels, dtype), "--translate", WIDTH + 1, 0, "--border-color", text, *POINT)
        np.testing.assert_array_equal(out, np.broadcast_to(texel, (HEIGHT, WIDTH, channels)), text)


# Running


def test_one_compilation_for_all_images_of_a_dtype(tmp_path, capsys):
    sized_image.compiled.cache_clear()
    pictures = {"a.png": noise(3), "b.tif": 255 - noise(3), "c.png": noise(3, width=WIDTH + 1)}
    for name, pixels in pictures.items():
        save(tmp_path / name, pixels)
    for angle in (10, 20):
        options = ("--rotate", angle, "--border-color", angle, "--overwrite")
        assert "3 warped, 0 failed" in done(capsys, "warp", tmp_path, tmp_path / "out", *options)
    assert sized_image.compiled.cache_info().misses == 1


def test_a_broken_image_in_a_folder_stops_none_of_the_others(tmp_path, capsys):
    folder = tmp_path / "in"
    (folder / "deeper.png").mkdir(parents=True)
    save(folder / "a.png", noise(3))
    save(folder / "c.tif", noise(3))
    save(folder / "d.png", noise(3)).rename(folder / "d.PNG")
    whole = save(folder / "b.png", noise(3)).read_bytes()
    (folder / "b.png").write_bytes(whole[: len(whole) // 2])
    (folder / "e.jpg").write_bytes(b"not an image")
    (folder / "readme.txt").write_text("not an image either")
    code, out, err = run(capsys, "warp", folder, tmp_path / "made" / "out", *POINT)
    assert (code, "3 warped, 2 failed" in out, out.count("\n")) == (2, True, 1)
    first, second = err.splitlines()
    assert all(line.startswith("jaxtex: error: ") for line in (first, second))
    assert ("b.png" in first, "e.jpg" in second) == (True, True)
    assert listing(tmp_path / "made" / "out") == ["a.png", "c.tif", "d.PNG"]


def test_one_file_is_reported_in_one_line(tmp_path, capsys):
    source = save(tmp_path / "in.png", noise(3))
    (tmp_path / "folder").mkdir()
    out = done(capsys, "warp", source, tmp_path / "folder", "--rotate", 20, "--translate", 1, -2.5)
    target = tmp_path / "folder" / "in.png"
    assert target.exists()
    assert out.startswith(
        f"in.png 9x6 -> {target} 9x6: rotated by 20 degrees, translated by 1 -2.5, linear filter, on "
    )
    assert out.endswith(" s)\n")


def test_help_states_the_conventions_and_unit_example_and_default_of_every_option():
    warp = commands.command_parser("warp")
    words = " ".join(warp.format_help().split())
    for statement in (
        *("centers are at +0.5", "y points down", "gamma-encoded", "weighted by alpha", "counter-clockwise as seen"),
        "color profiles stay, or the colors would change",
    ):
        assert statement in words
    for action in warp._actions:
        if action.nargs == 0 or action.choices or not action.option_strings:
            continue
        assert "e.g. " in action.help or action.dest in ("perspective", "antialias"), action.dest
        assert ("(default: " in action.help) != (action.dest in WHOLE_TRANSFORMS), action.dest
    assert set(FILTERS) == {mode.value for mode in FilterMode}
    assert set(ADDRESSES) - {"frame"} == {mode.value for mode in AddressMode}


# A process of its own


def test_as_a_program_and_without_the_extra_cli(tmp_path):
    """Help needs neither JAX nor NumPy, and all but `warp` no package of the extra."""
    script = f"""
import runpy, sys
for module in {tuple(PACKAGES)}:
    sys.modules[module] = None
from jaxtex.cli import main
from jaxtex.cli.commands import COMMANDS
for arguments in (["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)):
    try:
        main(arguments)
    except SystemExit as end:
        assert end.code == 0, arguments
assert main([]) == 0 and main(["warp", "--spin"]) == main(["warp", "IN", "OUT", "--size", "0x0"]) == 2
assert not {{"jax", "numpy"}} & sys.modules.keys()
assert main(["info"]) == 0
for module in {tuple(PACKAGES)}:
    del sys.modules[module]
runpy.run_module("jaxtex", run_name="__main__", alter_sys=True)
"""
    pixels = noise(3)
    source, target = save(tmp_path / "in.png", pixels), tmp_path / "out.png"
    environment = os.environ | {"PYTHONPATH": str(Path(jaxtex.__file__).parents[1])}
    command = [sys.executable, "-c", script, *map(str, ("warp", source, target, "--rotate", 180, *POINT))]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith(f"jaxtex {jaxtex.__version__}\n")
    assert "rotated by 180 degrees" in process.stdout
    assert process.stderr.count("\n") == 2  # of --spin and --size
    np.testing.assert_array_equal(load(target), pixels[::-1, ::-1])


@pytest.mark.parametrize("missing", [("PIL",), ("tifffile", "tqdm"), tuple(PACKAGES)])
def test_a_missing_package_is_one_sentence(tmp_path, capsys, monkeypatch, missing):
    source = save(tmp_path / "in.png", noise(1))
    for module in missing:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    err = refused(capsys, "warp", source, tmp_path / "out.png")
    assert f"({', '.join(PACKAGES[module] for module in missing)})" in err
    assert err.endswith("pip install '.[cli]'\n")
    assert not (tmp_path / "out.png").exists()
    # A mistake in the options comes first.
    assert "--camera has no effect" in refused(capsys, "warp", "in.png", "out.png", "--camera", "9,9,4,3")


# Info


SLOW = ("0.10.2", "0.10.2.dev20260701", "0.10.3", "0.11.0", "0.11.0rc1", "0.11.0+local")
FAST = ("0.9.2", "0.10.0", "0.10.1", "0.11.1", "0.11.2", "0.12.0.1", "1.0.0", "unknown")


def test_advice_is_for_gpus_and_releases_that_scatter_slowly_until_it_is_taken(monkeypatch):
    advised = {version: "install jaxlib 0.11.1" in jax_start.scatter_row(version, "gpu") for version in SLOW + FAST}
    assert advised == dict.fromkeys(SLOW, True) | dict.fromkeys(FAST, False)
    assert jax_start.scatter_row("0.10.2", "cpu") == "jaxlib 0.10.2 is slow on CUDA; CPUs are not affected"
    assert jax_start.scatter_row("0.12.0", "cpu") == jax_start.scatter_row("0.12.0", "gpu")
    monkeypatch.setenv("XLA_FLAGS", f"--xla_other=1 --xla_backend_extra_options={NATIVE_ATOMICS}")
    assert "install" not in jax_start.scatter_row("0.11.0", "gpu")


def test_info_prints_versions_and_devices(capsys):
    out = done(capsys, "info")
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert lines["jaxtex"] == jaxtex.__version__
    assert (lines["jax"], lines["numpy"]) == (jax.__version__, np.__version__)
    assert lines["backend"] == jax.default_backend()
    assert jax.devices()[0].device_kind in out
    assert {"jaxlib", "Python", "device", "64-bit", "scatter-add"} <= set(lines)
    card = types.SimpleNamespace(
        id=3, device_kind="NVIDIA H200", platform="gpu", memory_stats=lambda: {"bytes_limit": 100 * 2**30}
    )
    assert jax_start.describe_device(card) == "3: NVIDIA H200 (gpu), 100.0 GiB for JAX"


def test_no_device_is_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(jax, "devices", raising(RuntimeError("Unable to initialize backend 'cuda':\nno GPU.")))
    for arguments in (["info"], ["warp", save(tmp_path / "in.png", noise(3)), tmp_path / "out.png"]):
        refused(capsys, *arguments)
