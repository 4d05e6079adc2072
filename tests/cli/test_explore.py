"""`jaxtex explore` without a browser: what a view reads, what the page writes beside it, and mistakes."""

import shlex
import sys
from pathlib import Path

import imagecodecs
import jax
import numpy as np
import pytest
from PIL import Image

from jaxtex.cli import main
from jaxtex.cli.environment.extra import EXPLORE_PACKAGES
from jaxtex.cli.explore import rendering, views, written
from jaxtex.cli.explore.shown_picture import ShownPicture, read_shown
from jaxtex.cli.explore.views import View
from jaxtex.cli.grammar.commands import parse
from tests.cli.test_cli import noise, save

WIDTH, HEIGHT = 24, 16
NO_LIMIT = 10**9
TILTED = View(degrees=-30.0, tilt=50.0, address="wrap")
LEVEL = View(level=1.5, scale=0.5, address="clamp")


def shown(path: Path, *options: str) -> ShownPicture:
    """The picture that `jaxtex explore` shows."""
    return read_shown(parse(["explore", str(path), *options]), NO_LIMIT)


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """A picture of `WIDTH` by `HEIGHT`, and its renderer."""
    path = save(tmp_path_factory.mktemp("explore") / "in put.png", noise(3, height=HEIGHT, width=WIDTH))
    found = shown(path)
    return found, rendering.Renderer(found.pixels)


def call(text: str) -> np.ndarray:
    """What the Python on the page computes, as bytes."""
    scope = {}
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        exec(compile(text, "<page>", "exec"), scope)
    warped = np.asarray(scope["warped"])
    return warped if warped.dtype == np.uint8 else np.uint8(np.rint(np.clip(warped * np.float32(255), 0, 255)))


# Views


@pytest.mark.parametrize("view", [View(scale=2.0), TILTED, LEVEL, View(arithmetic="hardware"), View(filter="point")])
def test_the_call_in_python_makes_the_picture(picture, view):
    found, renderer = picture
    pixels = renderer.render(view).pixels
    assert pixels.shape == (HEIGHT, WIDTH, 3)
    assert len(np.unique(pixels)) > 30
    np.testing.assert_array_equal(call(written.python_call(view, found)), pixels)


@pytest.mark.parametrize("view", [View(degrees=-30.0, scale=1.5), TILTED])
def test_the_command_makes_the_picture(picture, view, tmp_path, monkeypatch):
    found, renderer = picture
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(written.command_line(view, found))
    assert program == "jaxtex"
    assert main(arguments) == 0
    pixels = imagecodecs.png_decode((tmp_path / "warped.png").read_bytes())
    # The command finds its own matrix, of four points or of an angle: values at the edge of rounding may change.
    assert np.abs(pixels.astype(int) - renderer.render(view).pixels).max() <= 1


def test_the_identity_is_the_picture(picture):
    found, renderer = picture
    rendered = renderer.render(View(degrees=0.0))
    np.testing.assert_array_equal(rendered.pixels, found.pixels)
    assert rendered.differences.max() == 0
    assert rendering.difference_sentence(rendered.differences) == "Both are equal in every value."


def test_a_slider_compiles_nothing(picture, caplog):
    _, renderer = picture
    for first, second in (
        (View(degrees=1.0, scale=0.5), View(degrees=77.0, scale=3.0)),
        (TILTED, View(degrees=5.0, tilt=20.0, scale=2.0, address="wrap")),
        (LEVEL, View(level=0.3, degrees=10.0, scale=3.0, tilt=5.0, address="clamp")),
    ):
        renderer.render(first)
        caplog.clear()
        with jax.log_compiles():
            renderer.render(second)
        assert "Compiling" not in caplog.text


def test_the_difference_is_that_of_the_arithmetics(picture):
    _, renderer = picture
    view = View(degrees=13.0)
    rendered = renderer.render(view)
    of_hardware = renderer.values(view, "hardware")
    np.testing.assert_array_equal(rendered.differences, np.abs(renderer.values(view, "float") - of_hardware))
    largest = rendered.differences.max()
    assert 0 < largest < 2
    assert f"{largest:.3g}," in rendering.difference_sentence(rendered.differences)
    assert rendering.amplified(rendered.differences, 1000).max() == 255
    other = renderer.render(View(degrees=13.0, arithmetic="hardware"))
    np.testing.assert_array_equal(other.pixels, rendering.as_pixels(of_hardware))
    np.testing.assert_array_equal(other.differences, rendered.differences)


def test_what_no_texture_unit_has_is_said_and_disabled(picture):
    _, renderer = picture
    size = (WIDTH, HEIGHT)
    assert renderer.render(View(filter="cubic")).differences is None
    assert views.hardware_problem(View(filter="cubic")) == "No texture unit has the filter cubic."
    assert views.hardware_problem(View(address="reflect")) == "No texture unit has the address mode reflect."
    assert views.disabled(View(filter="cubic"), size)["arithmetic"] == ["hardware"]
    disabled = views.disabled(View(arithmetic="hardware"), size)
    assert set(views.FILTERS) - set(disabled["filter"]) == {"point", "linear"}
    assert set(views.ADDRESSES) - set(disabled["address"]) == {"clamp", "border", "wrap", "mirror"}
    assert views.disabled(View(), (WIDTH + 1, HEIGHT))["address"] == ["sphere"]
    # A browser may send two changes at once. What is chosen cannot be disabled.
    both = views.disabled(View(arithmetic="hardware", filter="cubic"), size)
    assert "cubic" not in both["filter"]
    assert both["arithmetic"] == []
    for name in views.FILTERS:
        View(filter=name).sampler("float")


def test_the_horizon_stays_out_of_the_picture():
    for width, height in ((480, 320), (320, 480), (480, 1)):
        matrix = View(tilt=views.LARGEST_TILT, degrees=40.0, scale=0.05).matrix((width, height))
        corners = np.array([(0, 0, 1), (width, 0, 1), (width, height, 1), (0, height, 1)], float)
        assert (np.linalg.inv(matrix)[2] @ corners.T > 0).all()


# What the page writes


def test_why_there_is_no_command(picture):
    found, _ = picture
    for view, fragment in (
        (View(arithmetic="hardware"), "hardware arithmetic"),
        (LEVEL, "level of detail"),
        (View(antialias=True, filter="point"), "--filter point"),
        (View(antialias=True, tilt=10.0, anisotropy=2), "anisotropy of 8"),
    ):
        assert written.command_line(view, found) is None
        assert fragment in written.command_problem(view)
    antialiased = written.command_line(View(antialias=True, tilt=10.0, anisotropy=8), found)
    assert parse(shlex.split(antialiased)[1:]).antialias


def test_antialias_and_anisotropy_are_in_the_call(picture):
    text = written.python_call(View(antialias=True, tilt=10.0, anisotropy=4, arithmetic="hardware"), picture[0])
    assert "antialias=True" in text
    assert 'sampler=jt.Sampler(max_anisotropy=4, arithmetic="hardware")' in text
    assert views.without_effect(View(antialias=True)).keys() == {"level"}
    assert views.without_effect(View()).keys() == {"anisotropy"}


# Pictures


@pytest.mark.parametrize(
    ("suffix", "dtype", "channels"),
    [(".png", "uint8", 4), (".png", "uint16", 3), (".tif", "uint16", 1), (".png", "uint8", 1)],
)
def test_the_page_reads_every_kind_as_its_call_does(tmp_path, suffix, dtype, channels):
    found = shown(save(tmp_path / f"in{suffix}", noise(channels, dtype)))
    assert found.pixels.dtype == np.uint8
    assert found.pixels.shape[-1] == (1 if channels == 1 else 3)
    reading = "\n".join(["import imagecodecs, numpy as np", "from PIL import Image, ImageOps", *written.reading(found)])
    scope = {}
    exec(reading, scope)
    np.testing.assert_array_equal(scope["image"], found.pixels)


def test_a_large_picture_is_reduced_and_said_to_be(tmp_path):
    found = shown(save(tmp_path / "in.png", noise(3, height=40, width=60)), "--side", "30")
    assert (found.size, found.shown_size) == ((60, 40), (30, 20))
    assert str(found) == "in.png: 60x40 pixels, reduced to 30x20 for the preview"
    text = written.python_call(View(degrees=0.0), found)
    assert "image = jt.warp.resize(image, (20, 30))  # the preview" in text
    np.testing.assert_array_equal(call(text), found.pixels)


def test_a_page_is_chosen(tmp_path):
    pages = [Image.fromarray(noise(3, height=4 + k, width=6)) for k in range(2)]
    pages[0].save(tmp_path / "in.tif", save_all=True, append_images=pages[1:])
    found = shown(tmp_path / "in.tif", "--page", "2")
    assert found.size == (6, 5)
    assert "opened.seek(1)" in written.python_call(View(), found)
    assert "--page 2" in written.command_line(View(), found)
    np.testing.assert_array_equal(call(written.python_call(View(degrees=0.0), found)), found.pixels)


# Mistakes


def explained(capsys, *arguments: object) -> str:
    """The sentence that `jaxtex explore` ends with."""
    assert main(["explore", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_wrong_files_are_the_errors_of_warp(tmp_path, capsys, monkeypatch):
    for module in EXPLORE_PACKAGES:
        monkeypatch.setitem(sys.modules, module, sys)  # as if it were installed; it is not reached
    (tmp_path / "text.png").write_text("no picture")
    pages = [Image.fromarray(noise(3)) for _ in range(2)]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    for name in ("missing.png", "text.png"):
        error = explained(capsys, tmp_path / name)
        assert main(["warp", str(tmp_path / name), str(tmp_path / "out.png")]) == 2
        assert capsys.readouterr().err == error
    assert "choose it with --page 1 to --page 2" in explained(capsys, tmp_path / "pages.tif")
    assert "Is a directory" in explained(capsys, tmp_path)
    assert "standard input" in explained(capsys, "-")
    assert "--max-pixels sets another limit" in explained(
        capsys, save(tmp_path / "in.png", noise(3)), "--max-pixels", 8
    )


@pytest.mark.parametrize(
    "options", [("--side", "9"), ("--port", "70000"), ("--host", "a b"), ("--host", ""), ("--side", "x")]
)
def test_wrong_values_are_one_sentence(capsys, options):
    assert options[0] in explained(capsys, "in.png", *options)


def test_a_missing_extra_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "panel", None)
    error = explained(capsys, "in.png")
    assert "not installed (panel)" in error
    assert error.endswith("pip install 'jaxtex[explore]'\n")
