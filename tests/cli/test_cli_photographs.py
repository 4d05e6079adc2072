"""What photographers ask of the command line: sizes, turns, whole edges, transparency, light, streams and folders."""

import io
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jaxtex.cli import commands, main, pipeline, transforms
from jaxtex.cli.commands import DESCRIPTIONS
from jaxtex.cli.transforms import Resize
from jaxtex.warp.sized.mappings import MAX_ANISOTROPY
from tests.cli.test_cli import HEIGHT, POINT, WIDTH, done, listing, load, noise, save, warped
from tests.support.tolerances import assert_codes_close

WHITE = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)


def made(tmp_path, pixels: np.ndarray, *arguments: object) -> np.ndarray:
    """`pixels` after a command, through files."""
    source, target = save(tmp_path / "in.png", pixels), tmp_path / "out.png"
    name, *options = map(str, arguments)
    assert main([name, str(source), str(target), *options]) == 0
    return load(target)


def test_white_stays_white_up_to_the_edge(tmp_path):
    for command in (("warp", "--scale", 1.3, "--size", "11x7"), ("rotate", "--angle", 9, "--crop")):
        assert (made(tmp_path, WHITE, *command) == 255).all(), command


def test_the_edge_of_a_turned_picture_is_one_pixel_wide(tmp_path):
    """Coverage sums to the area of the picture, and no pixel farther than one from the edge is mixed."""
    white = np.full((40, 60, 1), 255, np.uint8)
    out = made(tmp_path, white, "rotate", "--angle", 25, "--expand")[..., 0] / 255
    assert abs(out.sum() - 40 * 60) < 0.005 * 40 * 60
    y, x = np.mgrid[: out.shape[0], : out.shape[1]] + 0.5
    x, y = x - out.shape[1] / 2, y - out.shape[0] / 2
    cosine, sine = np.cos(np.radians(25)), np.sin(np.radians(25))
    inside = np.minimum(30 - abs(cosine * x - sine * y), 20 - abs(sine * x + cosine * y))
    np.testing.assert_array_equal(out[inside > 0.5], 1)
    np.testing.assert_array_equal(out[inside < -0.5], 0)


def test_nothing_shows_where_a_lens_leads_nowhere(tmp_path):
    """All of it looks at points that no ray leads to."""
    folded = warped(tmp_path, WHITE, "--distort", "-9", "--camera", "1,1,-20,-20", "--border-color", "gray")
    assert (folded == 128).all()


def test_sizes_of_a_resized_picture(tmp_path):
    sizes = {
        Resize(0.01): (1, 1),
        Resize(fit=(4, 4)): (4, 3),
        Resize(fit=(90, 24)): (9, 6),
        Resize(fit=(90, 24), enlarge=True): (36, 24),
    }
    assert {resize: resize.output_size((WIDTH, HEIGHT)) for resize in sizes} == sizes
    for options, shape in (("--fit 90x24 --enlarge", (24, 36, 3)), ("--size 5x4", (4, 5, 3))):
        assert made(tmp_path, noise(3), "resize", *options.split(), *POINT).shape == shape


def test_one_number_and_a_percentage_keep_the_proportions(tmp_path):
    """The number is that of the longer side, whichever it is; of pictures that become larger, too."""
    tall = noise(3).swapaxes(0, 1)
    for size, pixels, shape in (("3", noise(3), (2, 3, 3)), ("18", noise(3), (12, 18, 3)), ("18", tall, (18, 12, 3))):
        for command in (("resize",), ("rotate", "--angle", 3), ("warp",)):
            assert made(tmp_path, pixels, *command, "--size", size, *POINT).shape == shape
    half = made(tmp_path, noise(3), "resize", "--size", "33.4%")
    assert half.shape == (2, 3, 3)
    np.testing.assert_array_equal(half, made(tmp_path, noise(3), "resize", "--scale", 0.334))
    # As with two sides, what is not resized stays where it is.
    larger = made(tmp_path, noise(3), "warp", "--matrix", 1, 0, 0, 0, 1, 0, "--size", "200%", *POINT)
    np.testing.assert_array_equal(larger[:6, :9], noise(3))
    assert larger.shape == (12, 18, 3)
    assert not larger[6:].any()


def block_means(pixels: np.ndarray, n: int) -> np.ndarray:
    """The mean of each n by n block, of colors weighted by alpha."""
    values = pixels.astype(np.float64)
    values[..., :-1] *= values[..., -1:]
    height, width = values.shape[:2]
    means = values.reshape(height // n, n, width // n, n, -1).mean(axis=(1, 3))
    means[..., :-1] /= means[..., -1:]
    return means


def test_a_mean_of_areas(tmp_path):
    pixels = noise(4, "uint16", height=8, width=12)
    out = made(tmp_path, pixels, "resize", "--scale", 0.25, "--filter", "area")
    assert_codes_close("sum", out, block_means(pixels, 4), 65535)


def test_cropped_sizes():
    # Of a square turned by 45 degrees half of the diagonal is left; a narrow strip touches with two sides.
    assert transforms.AffineParts(rotate=45, crop=True).output_size((100, 100)) == (70, 70)
    assert transforms.inscribed(100, 50, 0) == (100, 50)
    np.testing.assert_array_equal(np.round(transforms.inscribed(1000, 10, 30), 3), np.round((10, 10 / 3**0.5), 3))


def test_as_many_reads_as_the_footprint_is_long():
    sides = {1: (1, 1), 2: (3.0, 2.9), 4: (1.0, 4.0), 8: (1.0, 4.1), MAX_ANISOTROPY: (1e-3, 1e3)}
    assert [transforms.anisotropy(np.diag(pair)) for pair in sides.values()] == [*sides]
    assert transforms.anisotropy(7 * transforms.rotation(33)) == 1


def test_corners_of_an_opaque_picture_become_transparent(tmp_path):
    out = made(tmp_path, np.full((20, 20, 3), 200, np.uint8), "rotate", "--angle", 45, "--alpha")
    assert out.shape == (20, 20, 4)
    assert (out[0, 0, 3], out[10, 10, 3]) == (0, 255)
    assert (out[out[..., 3] > 0][:, :3] == 200).all()
    gray = made(tmp_path, noise(1), "warp", "--translate", 2, 0, "--alpha", *POINT)
    np.testing.assert_array_equal(gray[..., 1], [[0, 0, *[255] * (WIDTH - 2)]] * HEIGHT)


def test_light_is_blended_where_asked(tmp_path):
    every_code = np.arange(65536, dtype=np.uint16).reshape(256, 256, 1)
    np.testing.assert_array_equal(made(tmp_path, every_code, "warp", "--linear-light"), every_code)
    stripes = np.tile(np.uint8([0, 255]), (4, 4))[..., None]
    half = np.dstack([stripes, np.full_like(stripes, 128)])
    for more, code in (((), 128), (("--linear-light",), 188)):  # half of the light
        out = made(tmp_path, half, "resize", "--scale", 0.5, "--filter", "linear", *more)
        assert (out[:, 1:-1] == (code, 128)).all()


def test_quality_and_subsampling_of_what_is_written(tmp_path, capsys):
    pixels, sizes, exact = noise(3, height=32, width=32), [], []
    source, jpeg, webp = save(tmp_path / "in.png", pixels), tmp_path / "out.jpg", tmp_path / "out.webp"
    for options in ((), ("--quality", 30), ("--quality", 30, "--subsampling", 420)):
        done(capsys, "warp", source, jpeg, *POINT, *options)
        sizes.append(jpeg.stat().st_size)
        with Image.open(jpeg) as image:
            assert image.layer[0][1:3] == ((2, 2) if "--subsampling" in options else (1, 1))
    assert sorted(sizes, reverse=True) == sizes
    for options in ((), ("--quality", 50)):
        done(capsys, "warp", source, webp, *POINT, *options)
        exact.append((load(webp) == pixels).all())
    assert exact == [True, False]


def folder_with_subfolder(tmp_path) -> Path:
    folder = tmp_path / "in"
    (folder / "deeper").mkdir(parents=True)
    save(folder / "a.png", noise(3))
    save(folder / "deeper" / "b.tif", noise(3))
    return folder


def test_folders_in_folders_under_another_format(tmp_path, capsys):
    folder, out = folder_with_subfolder(tmp_path), tmp_path / "in" / "out"
    options = (*POINT, "--recursive", "--format", "webp")
    for more in ((), ("--overwrite",)):  # the second time the folder to write to is within the one to read
        done(capsys, "warp", folder, out, *options, *more)
        files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
        assert files == ["a.webp", "deeper/b.webp"]
    np.testing.assert_array_equal(load(out / "deeper" / "b.webp"), noise(3))


def test_several_inputs_and_a_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = folder_with_subfolder(tmp_path)
    save(tmp_path / "c.png", noise(1))
    threads, pool = [], pipeline.ThreadPoolExecutor
    monkeypatch.setattr(pipeline, "ThreadPoolExecutor", lambda count: threads.append(count) or pool(count))
    out = done(capsys, "warp", "c.png", *POINT, "--verbose", "--jobs", 1, folder, folder / "deeper", "out").splitlines()
    assert threads == [1]
    assert listing(tmp_path / "out") == ["a.png", "b.tif", "c.png"]
    assert (out[0], len(out), "3 warped, 0 failed" in out[3]) == ("c.png -> out/c.png: 9x6", 4, True)
    assert done(capsys, "warp", "c.png", folder, "out", *POINT, "--quiet", "--overwrite") == ""


class Stream(io.StringIO):
    """A text stream over bytes, as standard input and output are."""

    def __init__(self, data: bytes = b""):
        super().__init__()
        self.buffer = io.BytesIO(data)


def test_names_that_begin_with_a_dash(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "-in.png", noise(1))
    done(capsys, "warp", *POINT, "--translate", "-1", "0", "--", "-in.png", "-1.png")
    np.testing.assert_array_equal(load(tmp_path / "-1.png")[:, :-1], noise(1)[:, 1:])


def test_standard_input_to_standard_output(tmp_path, capsys, monkeypatch):
    source = save(tmp_path / "in.png", noise(3))
    for options, kind in (((), "PNG"), (("--format", "tif"), "TIFF")):
        stdout = Stream()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", Stream(source.read_bytes()))
            patch.setattr(sys, "stdout", stdout)
            assert main(["rotate", "-", "-", "--angle", "180", *options]) == 0
        assert stdout.getvalue() == ""
        assert "rotated by 180 degrees" in capsys.readouterr().err
        with Image.open(io.BytesIO(stdout.buffer.getvalue())) as image:
            assert image.format == kind
            np.testing.assert_array_equal(np.asarray(image), noise(3)[::-1, ::-1])


def test_a_preview_is_one_small_picture(tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.png", "b.png"):
        save(folder / name, np.full((60, 1200, 3), 77, np.uint8))
    done(capsys, "warp", folder, tmp_path / "out.png", "--preview", *POINT)
    assert (load(tmp_path / "out.png") == 77).all()
    assert load(tmp_path / "out.png").shape == (24, 960, 3)


def test_no_command_is_asked_for_help(capsys):
    out = done(capsys)
    assert out.startswith("usage: jaxtex COMMAND")
    assert all(f"    {name} " in out for name in commands.COMMANDS)


def test_each_help_has_three_examples_that_are_understood():
    for name, description in DESCRIPTIONS.items():
        examples = [line.strip() for line in description.splitlines() if line.startswith("    ")]
        assert len(examples) >= 3
        for example in examples:
            words = shlex.split(example.replace("source <(", "").replace(")", "").split(" > ")[0])
            assert words[:2] == ["jaxtex", name]
            commands.parse(words[1:])
        assert examples[0] in commands.command_parser(name).format_help()


TRIES = """
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMPREPLY=(); _shtab_jaxtex "$1" "${@: -1}"; echo "${COMPREPLY[@]}"; }
try jaxtex re; try jaxtex warp --filter lanc; try jaxtex rotate --ex; try jaxtex completion z
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_every_command_and_option(shell):
    script, found = commands.completion(shell), shutil.which(shell)
    for name in commands.COMMANDS:
        assert name in script
        for action in commands.command_parser(name)._actions:
            for flag in action.option_strings:
                assert (f"-l {flag[2:]} " if shell == "fish" else flag) in script or not flag.startswith("--")
            assert all(str(choice) in script for choice in action.choices or ())
    if found:
        assert subprocess.run([found, "-n"], input=script, text=True, check=False).returncode == 0
    if found and shell == "bash":
        tried = subprocess.run([found], input=script + TRIES, capture_output=True, text=True, check=True)
        assert tried.stdout.splitlines() == ["resize", "lanczos2 lanczos3", "--expand", "zsh"]
