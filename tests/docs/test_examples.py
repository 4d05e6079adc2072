"""Every example runs, in small, and shows what it claims. A new example needs a test of its name here, or a file."""

import importlib
import importlib.util
import re
import sys
from pathlib import Path

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
        assert f"test_{name}" in globals() or any((ROOT / "tests").rglob(f"test_{name}.py"))
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
    corner = jt.texture2d(np.arange(16, dtype=np.float32).reshape(4, 4, 1))
    expected = [11.84375, 10.39453125, 5.50390625, 2.8828125]
    assert_close("texture unit axis", load("rotate").rotate(corner, 0.5, 0.0)[0, :, 0], expected, 2 * 15 / 2)


def test_read_texels(printed):
    assert [float(line) for line in printed("read_texels")] == [0, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]


def test_negate(printed):
    lines = printed("negate")
    assert "argument given up: True" in lines[0]
    assert lines[1:] == ["out[0] = -0.0, out[2559] = -2559.0", "Correct"]


def test_reverse(printed):
    assert printed("reverse") == ["out[0] = 262143, out[262143] = 0", "Correct!"]


def test_address_modes(printed, tmp_path):
    lines = printed("address_modes", "--size", 20, 20, "--out", tmp_path / "out.png")
    table = {mode: [int(value) for value in values] for mode, *values in map(str.split, lines[:-1])}
    assert table == {
        "index": list(range(-7, 12)),
        "clamp": [0] * 8 + [1, 2] + [3] * 9,
        "border": [0] * 8 + [1, 2, 3] + [0] * 8,
        "wrap": [1, 2, 3] + [0, 1, 2, 3] * 4,
        "mirror": [1, 2, 3] + [3, 2, 1, 0, 0, 1, 2, 3] * 2,
        "reflect": [1] + [0, 1, 2, 3, 2, 1] * 3,
    }


def test_table_lookup(printed):
    assert [numbers(line)[-1] for line in printed("table_lookup")] == [1, 1, 2, 3, 2.5, 2, 3.5, 5, 5]


def test_gather(printed):
    lines = printed("gather")
    assert lines[2] == "component 2: 31 29 37 30"
    assert lines[4:] == [
        "x = 2.0: columns 1 and 2, blended 1.5000",
        "x = 2.498: columns 1 and 2, blended 1.9980",
        "x = 2.5: columns 2 and 3, blended 2.0000",
    ]


def test_bloom_filter(printed):
    lines = printed("bloom_filter", "--keys", 10_000)
    assert lines[1] == "false negatives: 0"
    measured, theory = numbers(lines[2])
    # The count of false positives is Poisson to a good approximation: four standard deviations, in per cent.
    assert abs(measured - theory) < 4 * np.sqrt(theory / 100 / 10_000) * 100


def test_two_pass(printed):
    lines = printed("two_pass")
    assert lines[0] == "[2. 4. 6.] -> [-2.  0.  2.]"
    for line in lines[1:3]:
        assert_close("long sum", numbers(line)[-1], 0, 1)
    assert_close("reordered", numbers(lines[3])[0], 0, 1)


def test_z_order(printed, tmp_path):
    lines = printed("z_order", "--size", 32, "--out", tmp_path / "out.png")
    table = [[int(value) for value in line.split()] for line in lines[:4]]
    assert table == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    assert lines[4:6] == ["(5, 3) -> 27, (1, 2, 3) -> 53", "read back equal: True"]
    assert pixels(tmp_path / "out.png").std() > 20


@pytest.mark.slow
def test_register(printed, tmp_path):
    lines = printed("register", "--small", "--out", tmp_path / "out.png", "--animation", tmp_path / "out.webp")
    degrees, percent, shift = numbers(lines[-3].split("off by")[1])[:3]
    assert degrees < 0.1
    assert percent < 0.5
    assert shift < 0.2
    with Image.open(tmp_path / "out.webp") as animation:
        assert animation.n_frames == 11


@pytest.mark.slow
def test_register_volumes(printed, tmp_path):
    pytest.importorskip("optax")
    lines = printed("register_volumes", "--size", 32, "--steps", 0, 60, 0, "--out", tmp_path / "out.png")
    descent, difference, overlap, off, jacobian, _ = map(numbers, lines)
    assert descent[-1] < 0.4 * descent[1]
    assert difference[1] < 0.4 * difference[0]
    assert overlap[1] > overlap[0] + 0.05
    assert off[1] < off[0]
    assert jacobian[0] > 0.1, "nothing folds"


@pytest.mark.slow
def test_tomography(printed, tmp_path):
    lines = printed("tomography", "--size", 48, "--views", 30, "--steps", 60, "--out", tmp_path / "out.png")
    (projection, *_), (back, *_), (found, *_), _ = map(numbers, lines)
    assert projection < 0.01
    assert found < 0.6 * back


@pytest.mark.slow
def test_transfer_function(printed, tmp_path):
    pytest.importorskip("optax")
    args = "--size", 12, "--steps", 24, "--rounds", 40, "--panel", 48, "--out", tmp_path / "out.png"
    descent, start, learned, _ = map(numbers, printed("transfer_function", *args, RATE=0.2, SIZE=24))
    assert descent[1] < 0.1 * descent[0]
    assert learned[0] > start[0] + 10


def test_bilateral_filter(printed, tmp_path):
    lines = printed("bilateral_filter", "--size", 48, 32, "--steps", 8, "--out", tmp_path / "out.png", REACH=2)
    start, learned, _ = map(numbers, lines)
    assert learned[1] > start[1]
    assert learned[2] > start[2] + 2 > start[3] + 2


@pytest.mark.slow
def test_block_compression(printed, tmp_path):
    coffee = Image.open(ROOT / "examples/data/coffee.png").convert("RGB")
    coffee.crop((324, 276, 396, 324)).save(tmp_path / "small.png")
    args = "--image", tmp_path / "small.png", "--steps", 50, "--out", tmp_path / "out.png"
    lines = printed("block_compression", *args, DETAIL=(8, 8, 32, 24), TIMES=2)
    for pillow, descent, gain in ((*lines[:2], 2), (*lines[2:4], 8)):
        assert numbers(descent)[-1] > numbers(pillow)[-1] + gain


@pytest.mark.slow
def test_radiograph(printed, tmp_path):
    args = "--size", 16, "--pixels", 16, "--out", tmp_path / "out.png"
    (angle, shift), found, _ = map(numbers, printed("radiograph", *args, LEVELS=(1,)))
    assert (angle > 15, shift > 0.5, found[0] < 1.5, found[1] < 0.15) == (True,) * 4


def test_ridges(printed, tmp_path):
    lines = printed("ridges", "--size", 32, "--out", tmp_path / "out.png")
    share, brightness = numbers(lines[0])
    assert 0.005 < share < 0.05
    assert brightness > 1.3 * numbers(lines[1])[0], "mortar is brighter than bricks"


def test_particles(printed, tmp_path):
    lines = printed("particles", "--particles", 32, "--out", tmp_path / "out.png")
    errors, shares = zip(*(numbers(line.split(":")[1])[:2] for line in lines[:-1]))
    assert len(errors) == 4
    assert_close("sum", errors, np.zeros(4), 1)
    assert [*shares] == sorted(shares, reverse=True)


@pytest.mark.slow
def test_spatial_transformer(printed, tmp_path):
    for package in ("flax", "optax", "sklearn"):
        pytest.importorskip(package)
    animation = tmp_path / "out.webp"
    train_epoch = optimized(load("spatial_transformer").train_epoch, static_argnames=("graph", "optimizer"))
    args = "--small", "--out", tmp_path / "out.png", "--animation", animation
    lines = printed("spatial_transformer", *args, POSES=1, train_epoch=train_epoch)
    with_layer, without, *_ = numbers(lines[0])
    assert with_layer <= without
    with_layer, without = (
        numbers(next(line for line in lines if line.startswith(name)))[0] for name in ("with ", "without")
    )
    assert with_layer > 60 > without > 20
    assert numbers(next(line for line in lines if line.startswith("margin")))[0] > 20


def test_theta(printed, tmp_path):
    lines = printed("theta", "--degrees", 0, "--out", tmp_path / "out.png")
    assert numbers(lines[0]) == [0.364, 0, 0.1]
    assert numbers(lines[1]) == [0, 0.455, -0.1]
    # The frame on the left: red where theta takes the output's left edge, at x = 0.1 - 0.364 of the input.
    edge = pixels(tmp_path / "out.png")[58 + 117, 58 + round(390 * (1 + 0.1 - 0.364) / 2)]
    assert_close("drawn line", edge, (209, 17, 65), 255)


@pytest.mark.slow
def test_textured_plane(printed, tmp_path):
    lines = printed("textured_plane", "--size", 48, 60, "--texels", 64, "--out", tmp_path / "out.png")
    point, linear, trilinear, anisotropic = (numbers(line)[-1] for line in lines[:4])
    assert anisotropic < 0.75 * trilinear
    assert trilinear < 0.75 * linear
    assert linear < point


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
def test_conventions(printed, tmp_path):
    lines = printed("conventions", "--out", tmp_path / "out.png")
    assert all(line.endswith("read as stored: True") for line in lines[:5])
    table = [numbers(line)[-4:] for line in lines[:5]]
    assert table == [
        [0.5, 1.5, 2.5, 3.5],
        [0.125, 0.375, 0.625, 0.875],
        [-0.75, -0.25, 0.25, 0.75],
        [-1, -0.3333, 0.3333, 1],
        [0, 1, 2, 3],
    ]
    assert [line.rsplit(": ")[1] for line in lines[5:-1]] == ["True"] * 5


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


def test_separable_blur(printed):
    lines = printed("separable_blur", "--size", 60, 40, "--sigma", 2)
    assert lines[0] == "13 weights in 7 reads a pixel and pass"
    assert_close("sum", numbers(lines[1])[0], 0, 1)


def test_copy_kernel(printed):
    lines = printed("copy_kernel", "--size", 60, 40)
    assert lines == ["9600 bytes copied, equal: True", "read as uint, equal: True", "read as uchar, equal: True"]


def test_surface_memset(printed):
    lines = printed("surface_memset")
    assert lines[0] == "float: 16 times 40490fdb, the elements around untouched"
    assert lines[1].split() == ["3.141593E+00"] * 16
    assert all(line.endswith("untouched") for line in lines[2:])


def test_mean_subtraction(printed):
    lines = printed("mean_subtraction", "--size", 60, 40)
    assert lines[0] == "[2. 4. 6.] -> [-2.  0.  2.] (12 of 12 bytes reused)"
    assert lines[1] == "photograph: 28800 of 28800 bytes reused, argument given up: True"
    assert lines[3].split()[-3:] == ["0.0000"] * 3


def test_histogram_equalization(printed, tmp_path):
    lines = printed("histogram_equalization", "--size", 60, 40, "--out", tmp_path / "out.png")
    assert lines[0] == "counts equal to numpy.bincount: True"
    assert numbers(lines[2])[:2] == [0, 255]
    assert numbers(lines[2])[-1] < 0.1 < 0.5 < numbers(lines[1])[-1]


@pytest.mark.slow
def test_reaction_diffusion(printed, tmp_path):
    lines = printed("reaction_diffusion", "--size", 64, "--steps", 400, "--spots", 2, "--out", tmp_path / "out.png")
    assert lines[0] == "32768 of 32768 bytes of the state reused"
    covered = [numbers(line)[-1] for line in lines[1:4]]
    assert 0 < covered[0] < covered[-1] < 50
    assert_close("sum", numbers(lines[4])[0], 0, 1)


@pytest.mark.slow
def test_tracer(printed, tmp_path):
    lines = printed("tracer", "--height", 60, "--steps", 24, "--size", 48, "--out", tmp_path / "out.png")
    mean, most = np.array([numbers(line)[:2] for line in lines[1:4]]).T
    assert mean[2] < 0.3 * mean[1] < 0.1 * mean[0]
    assert most[2] < 0.04


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


@pytest.mark.slow
def test_zone_plate(printed, tmp_path):
    lines = printed("zone_plate", "--small", "--out", tmp_path / "out.png")
    off = {line.split("  ")[0]: numbers(line)[-1] for line in lines[:-1]}
    assert off["shrunk and turned: antialias=True"] < 0.3 * off["shrunk and turned: one read a pixel"]
    assert off["shrunk and turned: one read a pixel"] > 0.2
    one, smoothed, along = (
        off[f"tilted: {way}"] for way in ("one read a pixel", "antialias=True", "max_anisotropy=16")
    )
    assert along < 0.6 * smoothed < smoothed < 0.6 * one


@pytest.mark.slow
def test_ndimage(printed, tmp_path):
    lines = printed("ndimage", "--size", 96, 64, "--steps", 6, "--out", tmp_path / "out.png")
    ratios = [numbers(line)[1] for line in lines[:4]]
    assert ratios[0] < ratios[1] < ratios[2] - 3 < ratios[3] - 3
    (*_, error, angle) = numbers(lines[-1])
    assert np.sqrt(error) < 0.003
    assert abs(angle - load("ndimage").TURNED) < 0.01


@pytest.mark.slow
def test_optical_flow(printed, tmp_path):
    pytest.importorskip("optax")
    lines = printed("optical_flow", "--small", "--out", tmp_path / "out.png")
    before, after, psnr = map(numbers, lines[-4:-1])
    assert after[0] < 0.3 * before[0]
    assert psnr[1] > psnr[0] + 15


@pytest.mark.slow
def test_homography(printed, tmp_path):
    lines = printed("homography", "--small", "--out", tmp_path / "out.png")
    assert numbers(lines[0])[0] > 10
    assert numbers(lines[-2])[-1] < 0.2


@pytest.mark.slow
def test_learned_texture(printed, tmp_path):
    pytest.importorskip("optax")
    lines = printed("learned_texture", "--small", "--out", tmp_path / "out.png")
    without, with_mipmaps = map(numbers, lines[:2])
    assert with_mipmaps[0] > without[0] + 6
    assert with_mipmaps[1] > without[1] + 4


@pytest.mark.slow
def test_feature_grid(printed, tmp_path):
    pytest.importorskip("optax")
    lines = printed("feature_grid", "--small", "--out", tmp_path / "out.png")
    parameters, values = numbers(lines[0])[:2]
    assert parameters < 0.2 * values
    assert numbers(lines[2])[1] > 0.01
    fit, shrunk = numbers(lines[3])
    assert fit > shrunk + 1


@pytest.mark.slow
def test_digits(printed, tmp_path):
    for package in ("optax", "sklearn"):
        pytest.importorskip(package)
    lines = printed("digits", "--small", "--out", tmp_path / "out.png", start=jax.jit(load("digits").start))
    names = [line.split(":")[0] for line in lines if " on average" in line]
    assert names == ["chosen points", "a regular grid"]
    assert numbers(next(line for line in lines if " steps of " in line))[:3] == [4, 64, 500]


@pytest.mark.slow
def test_raft(printed):
    lines = printed("raft", "--small")
    rounds = [numbers(line)[2:] for line in lines if line.startswith("round ")]
    assert len(rounds) == 6
    after, before = rounds[-1]
    assert after < 0.85 * before


@pytest.mark.slow
def test_hash_grid(printed):
    pytest.importorskip("optax")
    lines = printed("hash_grid", "--small")
    for what in ("photograph", "volume"):
        grids = [numbers(line)[-1] for line in lines if line.startswith(f"{what}, ") and line.endswith("parameters")]
        assert 0.9 < grids[0] / grids[1] < 1.1
        first, *_, last = (numbers(line) for line in lines if line.startswith(f"{what}, ") and " steps: " in line)
        # Of both grids, the ratio after the first and after the last round.
        assert last[1] > first[1]
        assert last[3] > first[3]


@pytest.mark.slow
def test_chessboard(printed, tmp_path):
    lines = printed("chessboard", "--small", "--out", tmp_path / "out.png")
    (k1, _), (found, _) = (numbers(line)[-2 - more : len(numbers(line)) - more] for line, more in zip(lines, (0, 1)))
    assert abs(found - k1) < 0.03
    before, after = (numbers(line) for line in lines[2:4])
    assert after[0] < 0.05 * before[0]


@pytest.mark.slow
def test_lens(printed, tmp_path):
    lines = printed("lens", "--small", "--out", tmp_path / "out.png", STEPS=8)
    k1, _, before, after = (number for number in numbers(lines[0]) if number not in (1, 2))
    assert -0.35 < k1 < -0.2
    assert after < 0.25 * before


@pytest.mark.slow
def test_deformational_flow(printed, tmp_path):
    args = "--height", 32, "--steps", 32, "--panel", 48, "--out", tmp_path / "out.png"
    _, *lines, _ = printed("deformational_flow", *args)
    error, mass, low, high = np.array([numbers(line)[-4:] for line in lines]).reshape(3, 4, 4).transpose(2, 0, 1)
    assert (error[:, 1:] < 0.75 * error[:, :1]).all()
    assert_close("rounded to a millionth", mass[:, 3], np.ones(3), 2)
    assert (low[:, 2] >= 0).all()
    assert low[1, 1] < 0.1 <= low[1, 2]
    assert (high <= 1.02).all()


def test_regrid(printed):
    _, *lines = printed("regrid", "--gaussian", 24, "--regular", 36)
    linear, lagrange = np.array([numbers(line)[-4:] for line in lines])
    assert (lagrange[:2] < 0.1 * linear[:2]).all()
    assert (np.abs([linear[2], lagrange[2]]) < 1.01).all()
