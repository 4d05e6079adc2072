"""Every example runs, in small, and shows what it claims. A new example needs a test of its name here, or a file."""

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from PIL import Image

import jaxtex as jt
from tests.support.tolerances import assert_close

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples"))
# `panels` draws for all of them.
EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py")) if path.stem != "panels"}
ANIMATIONS = ("register.webp", "spatial_transformer.webp")
NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"

pytestmark = pytest.mark.usefixtures("default_promotion")


@pytest.fixture
def printed(capsys):
    """Runs an example, with other values of some of its names, and returns its lines."""

    def run(name, *argv, **others):
        example = load(name)
        assert others.keys() <= vars(example).keys()
        vars(example).update(others)
        assert example.main([str(argument) for argument in argv]) == 0
        return capsys.readouterr().out.splitlines()

    return run


def load(name):
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES[name])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def optimized(function, **options):
    """A function of an example under `jax.jit`, optimized by LLVM, as it runs for longer than that takes."""
    return jax.jit(function.__wrapped__, **options, compiler_options={"xla_backend_optimization_level": 2})


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB")).astype(np.int32)


def panel(path, row, column, size, noted=False):
    """A panel of a picture whose panels have titles and all have the same size, width and height."""
    panels, picture = importlib.import_module("panels"), pixels(path)
    (width, height), (_, title, note) = size, panels.lines(picture.shape[1])
    left = panels.MARGIN + column * (width + panels.GAP)
    top = panels.MARGIN + title + row * (height + title + panels.GAP + noted * note)
    return picture[top : top + height, left : left + width]


def numbers(line):
    return [float(number) for number in re.findall(NUMBER, line)]


def test_each_example_has_a_test_an_entry_and_a_small_picture():
    """The pages are read over the network, and the repository is cloned with all versions of every picture."""
    page = (ROOT / "docs" / "examples.md").read_text()
    for name, path in EXAMPLES.items():
        tested = name in QUICK or name in SLOW or f"test_{name}" in globals()
        assert tested or any((ROOT / "tests").rglob(f"test_{name}.py"))
        assert f"](../examples/{name}.py). " in page
        assert "import matplotlib" not in path.read_text()
    for folder, most in {"": 300_000, "thumbnails/": 20_000}.items():
        pictures = [*(ROOT / "docs" / "images" / folder).glob("*.*")]
        assert pictures
        assert [path.name for path in pictures if path.stat().st_size > most and path.name not in ANIMATIONS] == []
    for name in ANIMATIONS:
        with Image.open(ROOT / "docs" / "images" / name) as animation:
            assert animation.info["loop"] == 1


def test_rotate(printed, tmp_path):
    lines = printed("rotate", "--size", 64, 32, "--theta", 0, "--out", tmp_path / "out.png")
    assert numbers(lines[0])[2] > 0.01
    assert numbers(lines[1])[2:] == [0, 0], "theta = 0 at texel centers is the identity, bit for bit"
    photograph = np.asarray(Image.open(ROOT / "examples/data/chelsea.jpg").convert("RGB").resize((64, 32)))
    for column in (0, 1):
        np.testing.assert_array_equal(panel(tmp_path / "out.png", 0, column, (64, 32)), photograph)
    detail = panel(tmp_path / "out.png", 1, 0, (64, 32))
    np.testing.assert_array_equal(detail[::8, ::8], photograph[8:12, 12:20])


def test_rotate_as_the_kernel_does():
    """Each of two axes has half the error of an axis, over texels that differ by at most 15."""
    rotate, corner = load("rotate").rotate, jt.texture2d(np.arange(16, dtype=np.float32).reshape(4, 4, 1))
    np.testing.assert_array_equal(rotate(corner, 0.0, 0.0)[0, :, 0], [7.5, 6.5, 7.5, 8.5])
    expected = [11.84375, 10.39453125, 5.50390625, 2.8828125]
    assert_close("texture unit axis", rotate(corner, 0.5, 0.0)[0, :, 0], expected, 2 * 15 / 2)


class Example(NamedTuple):
    """What a small run of an example prints, as the numbers of each line, and as lines.

    Attributes:
        args: of the command line; OUT stands for a picture, which it draws, and WEBP for an animation.
        holds: what must be true.
        needs: packages.
        others: other values of its names.
    """

    args: str
    holds: Callable[[list[list[float]], list[str]], Any]
    needs: tuple[str, ...] = ()
    others: tuple[tuple[str, Any], ...] = ()


def same(*lines: str) -> Callable[[Any, list[str]], bool]:
    return lambda n, found: found == [*lines]


def descends(n: list[list[float]], lines: list[str]) -> bool:
    return n[0][-1] < 0.4 * n[0][1] and n[1][1] < 0.4 * n[1][0]


def particles_return(n: list[list[float]], lines: list[str]) -> bool:
    errors, shares = zip(*(numbers(line.split(":")[1])[:2] for line in lines[:-1]))
    assert_close("sum", errors, np.zeros(4), 1)
    return [*shares] == sorted(shares, reverse=True)


def registers(n: list[list[float]], lines: list[str]) -> bool:
    """Degrees, per cent and texels off."""
    return (np.array(numbers(lines[-3].split("off by")[1])[:3]) < (0.1, 0.5, 0.2)).all()


def counts_right(n: list[list[float]], lines: list[str]) -> bool:
    """The count of false positives is Poisson to a good approximation: four standard deviations, in per cent."""
    measured, theory = n[2]
    return lines[1] == "false negatives: 0" and abs(measured - theory) < 4 * np.sqrt(theory / 100 / 10_000) * 100


def follows_the_flow(n: list[list[float]], lines: list[str]) -> bool:
    """Error, mass, and the lowest and highest density of four schemes in three flows; and what is published."""
    error, mass, low, high = np.array([line[-4:] for line in n[1:13]]).reshape(3, 4, 4).transpose(2, 0, 1)
    assert_close("rounded to a millionth", mass[:, 3], np.ones(3), 2)
    bounded = (low[:, 2] >= 0).all() and low[1, 1] < 0.1 <= low[1, 2] and (high <= 1.02).all()
    (size, once, steps, twice, more, theirs), _, (*_, lagrange), *limited, (*_, short) = n[13:-1]
    assert (size, steps, more, theirs, once < 0.068, twice < 0.087) == (40, 40, 80, 0.196, True, True)
    assert max(degrees for *_, degrees in limited) < lagrange < short
    return bounded and (error[:, 1:] < 0.75 * error[:, :1]).all()


def grids_learn(n: list[list[float]], lines: list[str]) -> bool:
    """Two grids of as many parameters; of both, the ratio after the first and after the last round."""
    for what in ("photograph", "volume"):
        rows = [line for line in lines if line.startswith(f"{what}, ")]
        grids = [numbers(line)[-1] for line in rows if line.endswith("parameters")]
        first, *_, last = (numbers(line) for line in rows if " steps: " in line)
        if not (0.9 < grids[0] / grids[1] < 1.1 and last[1] > first[1] and last[3] > first[3]):
            return False
    return True


def digits_are_read(n: list[list[float]], lines: list[str]) -> bool:
    names = [line.split(":")[0] for line in lines if " on average" in line]
    steps = numbers(next(line for line in lines if " steps of " in line))[:3]
    return names == ["chosen points", "a regular grid"] and steps == [4, 64, 500]


MODES = {
    "index": list(range(-7, 12)),
    "clamp": [0] * 8 + [1, 2] + [3] * 9,
    "border": [0] * 8 + [1, 2, 3] + [0] * 8,
    "wrap": [1, 2, 3] + [0, 1, 2, 3] * 4,
    "mirror": [1, 2, 3] + [3, 2, 1, 0, 0, 1, 2, 3] * 2,
    "reflect": [1] + [0, 1, 2, 3, 2, 1] * 3,
}
COPIED = ("9600 bytes copied, equal: True", "read as uint, equal: True", "read as uchar, equal: True")
BLENDED = [[2, 1, 2, 1.5], [2.498, 1, 2, 1.998], [2.5, 2, 3, 2]]  # x, the columns, and the value between them
QUICK = {
    "read_texels": Example("", lambda n, lines: [line[0] for line in n] == [0, *np.arange(0.5, 9)]),
    "negate": Example(
        "",
        lambda n, lines: (
            "argument given up: True" in lines[0] and lines[1:] == ["out[0] = -0.0, out[2559] = -2559.0", "Correct"]
        ),
    ),
    "reverse": Example("", same("out[0] = 262143, out[262143] = 0", "Correct!")),
    "address_modes": Example(
        "--size 20 20 --out OUT",
        lambda n, lines: {mode: [*map(int, row)] for mode, *row in map(str.split, lines[:-1])} == MODES,
    ),
    "table_lookup": Example("", lambda n, lines: [line[-1] for line in n] == [1, 1, 2, 3, 2.5, 2, 3.5, 5, 5]),
    "gather": Example("", lambda n, lines: lines[2] == "component 2: 31 29 37 30" and n[4:] == BLENDED),
    "bloom_filter": Example("--keys 10000", counts_right),
    "two_pass": Example(
        "",
        lambda n, lines: (
            lines[0] == "[2. 4. 6.] -> [-2.  0.  2.]"
            and (
                assert_close("long sum", [n[1][-1], n[2][-1]], [0, 0], 1),
                assert_close("reordered", n[3][0], 0, 1),
            )
        ),
    ),
    "z_order": Example(
        "--size 32 --out OUT",
        lambda n, lines: (
            n[:4] == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
            and lines[4:6] == ["(5, 3) -> 27, (1, 2, 3) -> 53", "read back equal: True"]
        ),
    ),
    "bilateral_filter": Example(
        "--size 48 32 --steps 8 --out OUT",
        lambda n, lines: n[1][1] > n[0][1] and n[1][2] > n[0][2] + 2 > n[0][3] + 2,
        others=(("REACH", 2),),
    ),
    "ridges": Example(  # mortar is brighter than bricks
        "--size 32 --out OUT", lambda n, lines: 0.005 < n[0][0] < 0.05 and n[0][1] > 1.3 * n[1][0]
    ),
    "particles": Example("--particles 32 --out OUT", particles_return),
    "separable_blur": Example(
        "--size 60 40 --sigma 2",
        lambda n, lines: (
            lines[0] == "13 weights in 7 reads a pixel and pass" and (assert_close("sum", n[1][0], 0, 1), True)
        ),
    ),
    "copy_kernel": Example("--size 60 40", same(*COPIED)),
    "surface_memset": Example(
        "",
        lambda n, lines: (
            lines[0] == "float: 16 times 40490fdb, the elements around untouched"
            and lines[1].split() == ["3.141593E+00"] * 16
            and all(line.endswith("untouched") for line in lines[2:])
        ),
    ),
    "mean_subtraction": Example(
        "--size 60 40",
        lambda n, lines: (
            lines[0] == "[2. 4. 6.] -> [-2.  0.  2.] (12 of 12 bytes reused)"
            and lines[1] == "photograph: 28800 of 28800 bytes reused, argument given up: True"
            and lines[3].split()[-3:] == ["0.0000"] * 3
        ),
    ),
    "histogram_equalization": Example(
        "--size 60 40 --out OUT",
        lambda n, lines: (
            lines[0] == "counts equal to numpy.bincount: True"
            and n[2][:2] == [0, 255]
            and n[2][-1] < 0.1 < 0.5 < n[1][-1]
        ),
    ),
}
TORCH, SCIPY = [0.125, 0.375, 0.625, 0.875], [0, 1, 2, 3]
CONVENTIONS = [[0.5, 1.5, 2.5, 3.5], TORCH, [-0.75, -0.25, 0.25, 0.75], [-1, -0.3333, 0.3333, 1], SCIPY]
SLOW = {
    "register": Example("--small --out OUT --animation WEBP", registers),
    "register_volumes": Example(  # and nothing folds
        "--size 32 --steps 0 60 0 --out OUT",
        lambda n, lines: descends(n, lines) and n[2][1] > n[2][0] + 0.05 and n[3][1] < n[3][0] and n[4][0] > 0.1,
        ("optax",),
    ),
    "tomography": Example(
        "--size 48 --views 30 --steps 60 --out OUT", lambda n, lines: n[0][0] < 0.01 and n[2][0] < 0.6 * n[1][0]
    ),
    "transfer_function": Example(
        "--size 12 --steps 24 --rounds 40 --panel 48 --out OUT",
        lambda n, lines: n[0][1] < 0.1 * n[0][0] and n[2][0] > n[1][0] + 10,
        ("optax",),
        (("RATE", 0.2), ("SIZE", 24)),
    ),
    "block_compression": Example(
        "--image SMALL --steps 50 --out OUT",
        lambda n, lines: n[1][-1] > n[0][-1] + 2 and n[3][-1] > n[2][-1] + 8,
        others=(("DETAIL", (8, 8, 32, 24)), ("TIMES", 2)),
    ),
    "radiograph": Example(
        "--size 16 --pixels 16 --out OUT",
        lambda n, lines: n[0][0] > 15 and n[0][1] > 0.5 and n[1][0] < 1.5 and n[1][1] < 0.15,
        others=(("LEVELS", (1,)),),
    ),
    "textured_plane": Example(
        "--size 48 60 --texels 64 --out OUT",
        lambda n, lines: n[3][-1] / 0.75 < n[2][-1] < 0.75 * n[1][-1] < 0.75 * n[0][-1],
    ),
    "conventions": Example(
        "--out OUT",
        lambda n, lines: (
            all(line.endswith("read as stored: True") for line in lines[:5])
            and [line[-4:] for line in n[:5]] == CONVENTIONS
            and [line.rsplit(": ")[1] for line in lines[5:-1]] == ["True"] * 5
        ),
    ),
    "reaction_diffusion": Example(
        "--size 64 --steps 400 --spots 2 --out OUT",
        lambda n, lines: (
            lines[0] == "32768 of 32768 bytes of the state reused"
            and 0 < n[1][-1] < n[3][-1] < 50
            and (assert_close("sum", n[4][0], 0, 1), True)
        ),
    ),
    "tracer": Example(
        "--height 60 --steps 24 --size 48 --out OUT",
        lambda n, lines: n[3][0] < 0.3 * n[2][0] < 0.1 * n[1][0] and n[3][1] < 0.04,
    ),
    "zone_plate": Example(
        "--small --out OUT",
        lambda n, lines: (
            (off := {line.split("  ")[0]: numbers(line)[-1] for line in lines[:-1]})
            and off["shrunk and turned: antialias=True"] < 0.3 * off["shrunk and turned: one read a pixel"]
            and off["shrunk and turned: one read a pixel"] > 0.2
            and off["tilted: max_anisotropy=16"] < 0.6 * off["tilted: antialias=True"]
            and off["tilted: antialias=True"] < 0.6 * off["tilted: one read a pixel"]
        ),
    ),
    "ndimage": Example(
        "--size 96 64 --steps 6 --out OUT",
        lambda n, lines: (
            n[0][1] < n[1][1] < n[2][1] - 3 < n[3][1] - 3
            and np.sqrt(n[-1][-2]) < 0.003
            and abs(n[-1][-1] - load("ndimage").TURNED) < 0.01
        ),
    ),
    "optical_flow": Example(
        "--small --out OUT", lambda n, lines: n[-3][0] < 0.3 * n[-4][0] and n[-2][1] > n[-2][0] + 15, ("optax",)
    ),
    "homography": Example("--small --out OUT", lambda n, lines: n[0][0] > 10 and n[-2][-1] < 0.2),
    "learned_texture": Example(
        "--small --out OUT", lambda n, lines: n[1][0] > n[0][0] + 6 and n[1][1] > n[0][1] + 4, ("optax",)
    ),
    "feature_grid": Example(
        "--small --out OUT",
        lambda n, lines: n[0][0] < 0.2 * n[0][1] and n[2][1] > 0.01 and n[3][0] > n[3][1] + 1,
        ("optax",),
    ),
    "digits": Example("--small --out OUT", digits_are_read, ("optax", "sklearn")),
    "raft": Example(
        "--small",
        lambda n, lines: (
            len(rounds := [numbers(line)[2:] for line in lines if line.startswith("round ")]) == 6
            and rounds[-1][0] < 0.85 * rounds[-1][1]
        ),
    ),
    "hash_grid": Example("--small", grids_learn, ("optax",)),
    "chessboard": Example(
        "--small --out OUT",
        lambda n, lines: abs(n[1][-3] - n[0][-2]) < 0.03 and n[3][0] < 0.05 * n[2][0],
    ),
    "lens": Example(
        "--small --out OUT",
        lambda n, lines: (
            (found := [number for number in n[0] if number not in (1, 2)])
            and -0.35 < found[0] < -0.2
            and found[3] < 0.25 * found[2]
        ),
        others=(("STEPS", 8),),
    ),
    "deformational_flow": Example(
        "--height 32 --steps 32 --panel 48 --published --out OUT",
        follows_the_flow,
        others=(
            ("SHORT_STEPS", 0.5),
            ("PUBLISHED", [("a cosine bell over the poles", "lagrange", "wave propagation", 2, {40: 0.196})]),
        ),
    ),
}


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_an_example_shows_what_it_claims(printed, tmp_path, name):
    example = (QUICK | SLOW)[name]
    for package in example.needs:
        pytest.importorskip(package)
    coffee = Image.open(ROOT / "examples/data/coffee.png").convert("RGB")
    coffee.crop((324, 276, 396, 324)).save(tmp_path / "small.png")
    files = {"OUT": tmp_path / "out.png", "WEBP": tmp_path / "out.webp", "SMALL": tmp_path / "small.png"}
    lines = printed(name, *(files.get(word, word) for word in example.args.split()), **dict(example.others))
    assert example.holds([*map(numbers, lines)], lines), lines
    assert "OUT" not in example.args or pixels(files["OUT"]).std() > 5
    assert "WEBP" not in example.args or Image.open(files["WEBP"]).n_frames == 11


def test_theta(printed, tmp_path):
    lines = printed("theta", "--degrees", 0, "--out", tmp_path / "out.png")
    assert numbers(lines[0]) == [0.364, 0, 0.1]
    assert numbers(lines[1]) == [0, 0.455, -0.1]
    # The frame on the left: red where theta takes the output's left edge, at x = 0.1 - 0.364 of the input.
    edge = pixels(tmp_path / "out.png")[58 + 117, 58 + round(390 * (1 + 0.1 - 0.364) / 2)]
    assert_close("drawn line", edge, (209, 17, 65), 255)


def test_antialiasing(printed, tmp_path):
    printed("antialiasing", "--size", 96, 64, "--texels", 64, "--out", tmp_path / "out.png")
    one, smooth = (panel(tmp_path / "out.png", 0, column, (96, 64))[12:24] for column in (0, 1))
    assert np.abs(np.diff(smooth, axis=1)).mean() < 0.5 * np.abs(np.diff(one, axis=1)).mean()


def test_environment_map(printed, tmp_path):
    printed("environment_map", "--size", 64, "--width", 90, "--out", tmp_path / "out.png")
    # The lower half of each sphere reflects the chequered plain, the rougher the fainter.
    crops = (panel(tmp_path / "out.png", 0, column, (30, 30))[18:24, 9:21] for column in range(3))
    polished, satin, dull = (np.abs(np.diff(crop, axis=1)).mean() for crop in crops)
    assert polished > satin > dull
    printed("environment_map", "--draw", "seams", "--size", 64, "--out", tmp_path / "out.png")
    # The edge between +x and +z runs down from the middle of each panel.
    seams = (panel(tmp_path / "out.png", 0, column, (64, 64))[46:60] for column in range(3))
    texels, alone, seamless = (np.abs(seam[:, 32] - seam[:, 31]).max() for seam in seams)
    assert seamless < 20 < 80 < min(texels, alone)


def test_hardware_arithmetic(printed, tmp_path):
    lines = printed("hardware_arithmetic", "--size", 64, "--out", tmp_path / "out.png")
    assert numbers(lines[3]) == [0, 0, 1, 1, 1, 1, 2, 2, 2]
    assert numbers(lines[4])[1] == numbers(lines[5])[1] == 1
    smooth, stepped = (panel(tmp_path / "out.png", 0, column, (64, 64), noted=True) for column in (1, 2))
    # 64 pixels over 16 steps: squares of 4 x 4 pixels, but for the half step at the edges.
    squares = stepped[2:62, 2:62].reshape(15, 4, 15, 4, 3)
    assert (squares == squares[:, :1, :, :1]).all()
    assert len(np.unique(smooth.reshape(-1, 3), axis=0)) > 1000 > 257 >= len(np.unique(squares.reshape(-1, 3), axis=0))


@pytest.mark.slow
def test_warp_gallery(printed, tmp_path):
    lines = printed("warp_gallery", "--width", 36, "--out", tmp_path / "out.png")
    gallery = load("warp_gallery")
    assert [line[:28].strip() for line in lines[:-1]] == list(gallery.PANELS)
    # Each panel shows something of its own. There are two more, of what is warped.
    panels = [panel(tmp_path / "out.png", row, column, (36, 24)) for row in range(6) for column in range(3)]
    assert len({found.tobytes() for found in panels[:12]}) == 12
    assert len({found.tobytes() for found in panels[12:]}) == 6
    assert len(gallery.PANELS) == 16
    assert all(found.std() > 20 for found in panels[:12])
    # At this size the joints between bricks fade.
    assert all(found.std() > 8 for found in panels[12:])


@pytest.mark.slow
def test_spatial_transformer(printed, tmp_path):
    for package in ("flax", "optax", "sklearn"):
        pytest.importorskip(package)
    animation = tmp_path / "out.webp"
    train_epoch = optimized(load("spatial_transformer").train_epoch, static_argnames=("graph", "optimizer"))
    args = "--small", "--out", tmp_path / "out.png", "--animation", animation
    lines = printed("spatial_transformer", *args, POSES=1, train_epoch=train_epoch)
    assert Image.open(animation).n_frames == 12
    with_layer, without, *_ = numbers(lines[0])
    assert with_layer <= without
    with_layer, without = (
        numbers(next(line for line in lines if line.startswith(name)))[0] for name in ("with ", "without")
    )
    assert with_layer > 60 > without > 20
    assert numbers(next(line for line in lines if line.startswith("margin")))[0] > 20


@pytest.mark.slow
@pytest.mark.skipif(jax.device_count() < 4, reason="needs four devices")
def test_semi_lagrangian(printed, tmp_path):
    args = "--size", 64, "--steps", 64, "--panel", 48, "--out", tmp_path / "out.png"
    _, explained, *lines = printed("semi_lagrangian", *args)
    assert "axis 0 in 4 parts: Halo(reach=5)" in explained
    mass, error, low, high, _ = np.array([numbers(line)[:5] for line in lines[:3]]).T
    assert (np.abs(mass - 1) < 0.1).all()
    assert error[1] < 0.8 * error[0]
    # The limit keeps values between those of texels.
    assert low[1] < 0 <= low[2] <= high[2] <= 1 < high[1]


def test_regrid(printed):
    _, *lines = printed("regrid", "--gaussian", 24, "--regular", 36)
    linear, lagrange = np.array([numbers(line)[-4:] for line in lines])
    assert (lagrange[:2] < 0.1 * linear[:2]).all()
    assert (np.abs([linear[2], lagrange[2]]) < 1.01).all()
