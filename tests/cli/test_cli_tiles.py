"""`jaxtex warp --tile`: the pixels of whole images, from files of every layout, and after a stop.

`test_cli_sizes` compares the tiles of every kind of warp with the whole.
"""

import re

import jax
import numpy as np
import pytest
import tifffile

from jaxtex.cli import run as cli_run
from jaxtex.cli.files import large_tiff
from jaxtex.cli.files.codecs import find_picture
from jaxtex.cli.files.exif import ORIENTATION
from jaxtex.cli.files.large_tiff import TiledOutput
from jaxtex.cli.process import UserError
from jaxtex.warp.sized import streams
from tests.cli.odd_files import RGB_PROFILE, pages_of
from tests.cli.test_cli import POINT, done, load, noise, refused, run
from tests.support.tolerances import assert_exact


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Several tiles of a small picture, several tiles of the file in each, and windows of few texels."""
    monkeypatch.setattr(streams, "TILE", (128, 192))
    monkeypatch.setattr(large_tiff, "SIDE", 64)
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def test_a_pixel_that_reads_too_much_is_a_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli_run, "WINDOW_SHARE", 1e-3)
    source = make(tmp_path / "in.tif", "mapped")
    assert "a pixel reads 180 x 260 texels at once, more than --memory leaves room for" in refused(
        capsys, "resize", source, tmp_path / "out.tif", "--tile", "--size", "1x1", "--memory", "1G"
    )


LAYOUTS = {
    "mapped": {},
    "big-endian": {"byteorder": ">"},
    "strips": {"compression": "adobe_deflate", "rowsperstrip": 50, "predictor": True},
    "tiles": {"tile": (64, 128), "compression": "adobe_deflate"},
    "mapped planes of a BigTIFF": {"planarconfig": "separate", "bigtiff": True},
    "planes": {"planarconfig": "separate", "tile": (64, 64), "compression": "adobe_deflate"},
    "turned": {"extratags": [(ORIENTATION, 3, 1, 6, True)]},
    "mirrored": {"extratags": [(ORIENTATION, 3, 1, 5, True)], "tile": (64, 64)},
    "alpha": {"extrasamples": ["assocalpha"], "tile": (64, 64)},
}


def make(path, layout, dtype="uint8"):
    """A file of a layout, and how it is decoded as a whole."""
    options = dict(LAYOUTS[layout])
    channels = 4 if "extrasamples" in options else 3
    pixels = noise(channels, dtype, 180, 260)
    if channels == 4:
        pixels[..., :3] = np.minimum(pixels[..., :3], pixels[..., 3:])
    pixels = np.moveaxis(pixels, -1, 0) if "planarconfig" in options else pixels
    tifffile.imwrite(path, pixels, photometric="rgb", metadata=None, **options)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_every_layout(tmp_path, capsys, layout):
    source = make(tmp_path / "in.tif", layout, "uint16" if layout == "big-endian" else "uint8")
    options = ("--rotate", 7, *POINT, *["--alpha"] * (layout == "strips"))
    assert run(capsys, "warp", source, tmp_path / "whole.tif", *options)[0] == 0
    out = done(capsys, "warp", source, tmp_path / "tiles.tif", *options, "--tile")
    assert re.search(r"[34] tiles of 1\d\dx128, peak memory [\d.]+ GB of 2.00 GB\n", out)
    assert_exact(load(tmp_path / "tiles.tif"), load(tmp_path / "whole.tif"))
    with tifffile.TiffFile(tmp_path / "tiles.tif") as tiff:
        assert (tiff.pages[0].tilewidth, tiff.is_bigtiff) == (64, False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tif", "tiles.tif", "whole.tif"]


def test_decoded_segments_leave_the_cache(tmp_path):
    source = find_picture(make(tmp_path / "in.tif", "tiles"))
    with large_tiff.open_large(source, 2**16, 2) as image:
        assert_exact(image[0:180, 0:260], load(tmp_path / "in.tif"))
        kept = image.samples.decoded.cache_info()
        assert 0 < kept.currsize * 64 * 128 * 3 <= 2**16
        assert kept.misses > kept.maxsize
    with pytest.raises(UserError, match="its tiles take 0 MB each"), large_tiff.open_large(source, 100, 2):
        pass


def test_metadata_stays_and_a_file_beyond_the_reach_of_four_bytes_is_a_bigtiff(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(large_tiff, "LARGEST_CLASSIC", 1000)
    kept = {"description": "a large picture", "iccprofile": RGB_PROFILE, "resolution": (300, 200), "metadata": None}
    tifffile.imwrite(tmp_path / "in.tif", noise(3, "uint8", 90, 100), photometric="rgb", **kept)
    places, tags = (273, 278, 279, *range(322, 326)), []
    for name, more in (("whole.tif", ()), ("tiles.tif", ("--tile",))):
        done(capsys, "rotate", tmp_path / "in.tif", tmp_path / name, "--angle", 3, *POINT, *more)
        with tifffile.TiffFile(tmp_path / name) as tiff:
            tags.append({tag.code: tag.value for tag in tiff.pages[0].tags if tag.code not in places})
            assert tiff.is_bigtiff == bool(more)
    assert tags[0] == tags[1]
    assert tags[0][270] == kept["description"]
    assert_exact(load(tmp_path / "tiles.tif"), load(tmp_path / "whole.tif"))


@pytest.fixture
def stopped(tmp_path, monkeypatch, capsys):
    """An input and the output of a run that was stopped after two parts, with a line and a tile that are cut off."""
    source, target = make(tmp_path / "in.tif", "mapped"), tmp_path / "out.tif"
    write, written = TiledOutput.write, []

    def stopping(output, *arguments):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(arguments[:2])
        write(output, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(TiledOutput, "write", stopping)
        code, _, err = run(capsys, "warp", source, target, "--rotate", 7, "--tile", *POINT)
    assert code == 130
    assert err == "jaxtex: error: interrupted; run it again with --resume to write only the tiles that are missing\n"
    assert not target.exists()
    with (tmp_path / "out.tif.part").open("ab") as part, (tmp_path / "out.tif.part.tiles").open("a") as record:
        part.write(b"half of a tile")
        record.write(f"11 {part.tell()} 100000\n12 1")
    return source, target


def resumed(capsys, monkeypatch, source, target, *options):
    """A run that goes on, and which parts it wrote."""
    write, written = TiledOutput.write, []
    monkeypatch.setattr(TiledOutput, "write", lambda *some: (written.append(some[1:3]), write(*some)))
    return *run(capsys, "warp", source, target, "--rotate", 7, "--tile", "--resume", *options), written


def test_a_run_that_was_stopped_goes_on(stopped, tmp_path, capsys, monkeypatch):
    source, target = stopped
    code, out, err, written = resumed(capsys, monkeypatch, source, target, *POINT)
    assert (code, err) == (0, "")
    assert "4 tiles of 192x128, 2 of them before" in out
    assert len(written) == 2
    run(capsys, "warp", source, tmp_path / "whole.tif", "--rotate", 7, *POINT)
    assert_exact(load(target), load(tmp_path / "whole.tif"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tif", "out.tif", "whole.tif"]
    code, out, _, written = resumed(capsys, monkeypatch, source, target, *POINT)
    assert (code, out, written) == (0, f"{target} exists, in.tif is skipped\n", [])


def test_tiles_of_other_options_are_refused(stopped, capsys, monkeypatch):
    source, target = stopped
    code, _, err, written = resumed(capsys, monkeypatch, source, target, "--filter", "cubic")
    assert (code, written) == (2, [])
    assert "--filter was point, and is cubic; give the same options as before" in err
    source.write_bytes(source.read_bytes() + b"\0")
    code, _, err, _ = resumed(capsys, monkeypatch, source, target, *POINT)
    assert code == 2
    assert "the size of the input was" in err


def test_a_page_is_chosen(tmp_path, capsys):
    (tmp_path / "two.tif").write_bytes(pages_of(255 - noise(3), noise(3)))
    done(capsys, "warp", tmp_path / "two.tif", tmp_path / "out.tif", "--tile", "--page", 2, *POINT)
    assert_exact(load(tmp_path / "out.tif"), noise(3))


def test_without_resume_a_run_begins_again(stopped, capsys):
    source, target = stopped
    code, out, _ = run(capsys, "warp", source, target, "--tile", *POINT)
    assert code == 0
    assert "before" not in out
    assert_exact(load(target), load(source))


def test_two_processes_write_no_file_together(tmp_path, capsys, stopped):
    source, target = stopped
    with (tmp_path / "out.tif.part").open("rb") as part:
        assert large_tiff.hold(part.fileno())
        code, _, err = run(capsys, "warp", source, target, "--tile", *POINT)
    assert code == 2
    assert "another process is writing" in err
