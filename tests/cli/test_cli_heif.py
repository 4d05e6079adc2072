"""HEIF (HEIC) where pillow-heif is installed, and a sentence that names the extra where it is not."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from jaxtex.cli.files import inputs
from tests.cli import odd_files as o
from tests.cli.test_cli import POINT, done, listing, load, noise, refused, run, save

needs_heif = pytest.mark.skipif(importlib.util.find_spec("pillow_heif") is None, reason="pillow-heif is not installed")


def smooth(channels: int = 3) -> np.ndarray:
    y, x = np.mgrid[:64, :96]
    return np.stack([x * 2, y * 3, x + y, 255 - x][:channels], axis=-1).astype(np.uint8)


def heic(path, pixels, **options):
    import pillow_heif

    pillow_heif.register_heif_opener()
    Image.fromarray(pixels).save(path, "HEIF", quality=90, **options)
    return path


def opened(path):
    with Image.open(path) as image:
        image.load()
        return np.asarray(image), image.info


def test_without_the_package_a_sentence_names_the_extra(tmp_path, capsys, monkeypatch):
    """For one file, and for a folder, where the others are warped."""
    monkeypatch.setattr(inputs, "has_heif", lambda: False)
    folder, extra = tmp_path / "in", "the extra heif; install it in a checkout of jaxtex: pip install '.[cli,heif]'"
    folder.mkdir()
    save(folder / "a.png", noise(3))
    (folder / "b.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0" + bytes(40))
    for words in ((folder / "b.heic", tmp_path / "out.png"), (folder / "a.png", tmp_path / "out.heic")):
        err = refused(capsys, "warp", *words)
        assert err.startswith(f"cannot {'read' if words[0].name == 'b.heic' else 'write'} ")
        assert extra in err
    code, report, err = run(capsys, "warp", folder, tmp_path / "out", *POINT)
    assert (code, "1 warped, 0 failed" in report, "left out: b.heic" in err) == (0, True, True)
    assert listing(tmp_path) == ["in", "out"]


def test_the_package_is_imported_only_for_heif():
    code = "import sys, jaxtex, jaxtex.cli.files.codecs; sys.exit('pillow_heif' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_heif
def test_a_heic_is_read_and_written(tmp_path, capsys):
    """Upright, with its metadata and its subsampling; a quality makes it smaller."""
    about = {"exif": b"Exif\0\0" + o.exif(6), "icc_profile": o.RGB_PROFILE, "xmp": o.XMP % 1}
    source = heic(tmp_path / "in.heic", smooth(), chroma=420, **about)
    shown, _ = opened(source)
    assert shown.shape == (96, 64, 3)
    done(capsys, "warp", source, tmp_path / "out.png", *POINT)
    np.testing.assert_array_equal(load(tmp_path / "out.png"), shown)
    done(capsys, "warp", source, tmp_path / "out.heic", *POINT)
    pixels, info = opened(tmp_path / "out.heic")
    assert np.abs(pixels.astype(int) - shown).mean() < 1.5
    assert (info["icc_profile"], info["xmp"], info["chroma"]) == (o.RGB_PROFILE, o.XMP % 1, 420)
    assert info["original_orientation"] in (None, 1)
    tags = Image.Exif()
    tags.load(info["exif"])
    assert (tags[271].encode("latin-1").decode(), tags.get_ifd(34665)[37500], tags.get_ifd(34853)[2]) == (
        o.MAKE,
        o.MAKER_NOTE,
        o.LATITUDE,
    )
    done(capsys, "warp", source, tmp_path / "444.heic", *POINT, "--subsampling", "444")
    assert opened(tmp_path / "444.heic")[1]["chroma"] == 444
    done(capsys, "warp", source, tmp_path / "small.heic", *POINT, "--quality", 20)
    assert (tmp_path / "small.heic").stat().st_size < (tmp_path / "out.heic").stat().st_size


@needs_heif
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_alpha_and_gray_are_written(tmp_path, capsys, channels):
    pixels = smooth(4)[..., {1: [0], 2: [0, 3], 4: [0, 1, 2, 3]}[channels]]
    save(tmp_path / "in.png", pixels)
    done(capsys, "warp", tmp_path / "in.png", tmp_path / "out.heic", *POINT)
    expected = np.asarray(Image.fromarray(pixels.squeeze()).convert("RGBA" if channels in (2, 4) else "RGB"))
    found = opened(tmp_path / "out.heic")[0].astype(int)
    assert found.shape == expected.shape
    assert np.abs(found - expected).mean() < 1.5


@needs_heif
def test_what_heif_loses_is_named(tmp_path, capsys):
    """Ten bits; a broken file and several pictures are refused."""
    import pillow_heif

    data = (np.arange(64 * 96 * 3) % 60000).astype(np.uint16)
    pillow_heif.encode("RGB;16", (96, 64), data.tobytes(), tmp_path / "in.heic", bit_depth=10)
    code, _, err = run(capsys, "warp", tmp_path / "in.heic", tmp_path / "out.tif", *POINT)
    assert (code, err) == (
        0,
        f"jaxtex: note: in.heic is reduced from {opened(tmp_path / 'in.heic')[1]['bit_depth']} to 8 bits\n",
    )
    save(tmp_path / "wide.png", noise(3, "uint16", 64, 96))
    code, _, err = run(capsys, "warp", tmp_path / "wide.png", tmp_path / "out.heic", *POINT)
    assert (code, "is reduced from 16 to 8 bits, the most that HEIF can store" in err) == (0, True)
    whole = heic(tmp_path / "whole.heic", smooth()).read_bytes()
    (tmp_path / "cut.heic").write_bytes(whole[: len(whole) // 2])
    assert "cut.heic: it is broken" in refused(capsys, "warp", tmp_path / "cut.heic", tmp_path / "no.png")
    heic(tmp_path / "two.heic", smooth(), save_all=True, append_images=[Image.fromarray(255 - smooth())])
    assert "it has 2 pages or frames; choose one" in refused(capsys, "warp", tmp_path / "two.heic", tmp_path / "no.png")
