"""How outputs are compressed: like an input of the same format, or as options say, as Pillow and tifffile read them."""

import io
import struct

import numpy as np
import pytest
import tifffile
from PIL import Image, JpegImagePlugin

from jaxtex.cli.files import codecs
from tests.cli.odd_files import photograph
from tests.cli.test_cli import POINT, done, load, noise, run, save

TIFF_TAGS = {"none": 1, "packbits": 32773, "lzw": 5, "deflate": 8, "zstd": 50000}


def tag_of(path) -> list[int]:
    with tifffile.TiffFile(path) as file:
        return [int(page.compression) for page in file.pages]


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_a_tiff_keeps_its_compression_or_gets_another(tmp_path, capsys, dtype):
    """In strips, on pages, and in tiles; no codec loses a bit."""
    names = {"none": None, "zstd": "zstd", "lzw": "lzw", "packbits": "packbits", "deflate": "adobe_deflate"}
    pixels = noise(3, dtype, 300, 9)
    pixels[50:200] = 7
    for kind, name in names.items():
        with tifffile.TiffWriter(tmp_path / "in.tif") as writer:
            for _ in range(2):
                writer.write(pixels, photometric="rgb", compression=name, metadata=None)
        done(capsys, "warp", tmp_path / "in.tif", tmp_path / "out.tif", *POINT)
        assert tag_of(tmp_path / "out.tif") == [TIFF_TAGS[kind]] * 2
        np.testing.assert_array_equal(tifffile.imread(tmp_path / "out.tif", key=1), pixels)
        done(capsys, "warp", tmp_path / "in.tif", tmp_path / "one.tif", *POINT, "--page", 2, "--tile")
        assert tag_of(tmp_path / "one.tif") == [TIFF_TAGS[kind]]
        np.testing.assert_array_equal(tifffile.imread(tmp_path / "one.tif"), pixels)
        save(tmp_path / "in.png", noise(3, dtype))
        for source in ("in.tif", "in.png"):
            done(capsys, "warp", tmp_path / source, tmp_path / "out.tif", *POINT, "--compression", kind)
            assert {*tag_of(tmp_path / "out.tif")} == {TIFF_TAGS[kind]}
    done(capsys, "warp", tmp_path / "in.png", tmp_path / "out.tif", *POINT)
    assert tag_of(tmp_path / "out.tif") == [8]


@pytest.mark.parametrize("kind", ["jpeg", "group4"])
def test_a_tiff_that_loses_or_has_one_bit_becomes_deflate(tmp_path, capsys, kind):
    image = photograph(1).convert("1") if kind == "group4" else photograph(3)
    image.save(tmp_path / "in.tif", compression=kind)
    done(capsys, "warp", tmp_path / "in.tif", tmp_path / "out.tif", *POINT)
    assert tag_of(tmp_path / "out.tif") == [8]


def test_a_jpeg_keeps_its_quality_and_subsampling(tmp_path, capsys):
    """To the tables, where the same codec wrote it; else those that are nearest. Each can be changed by itself."""
    source, target = tmp_path / "in.jpg", tmp_path / "out.jpg"

    def written(*options):
        done(capsys, "warp", source, target, *POINT, *options)
        with Image.open(target) as image:
            return image.quantization, JpegImagePlugin.get_sampling(image)

    for quality, subsampling, channels in ((30, 2, 3), (50, 1, 3), (88, 0, 3), (100, 2, 3), (61, -1, 1)):
        options = {"subsampling": subsampling} if channels == 3 else {}
        photograph(channels).save(source, quality=quality, **options)
        with Image.open(source) as image:
            tables = image.quantization
        found, sampling = written()
        assert (found[0], sampling) == (tables[0], subsampling)
        assert found == tables
    photograph(3).save(source, quality=40, subsampling=2)
    assert written("--quality", 70)[1] == 2
    with Image.open(source) as image:
        assert written("--subsampling", 444) == (image.quantization, 0)
    # Tables of another codec, between those of quality 80 and 81.
    near = Image.new("RGB", (8, 8))
    stream = io.BytesIO()
    near.save(stream, "JPEG", quality=80)
    tables = Image.open(stream).quantization
    photograph(3).save(source, qtables={0: [n + (k == 9) for k, n in enumerate(tables[0])], 1: tables[1]})
    assert written()[0] == tables
    # From another format, the default.
    photograph(3).save(tmp_path / "in.png")
    done(capsys, "warp", tmp_path / "in.png", target, *POINT)
    near.save(stream := io.BytesIO(), "JPEG", quality=95)
    with Image.open(target) as image:
        assert (image.quantization, JpegImagePlugin.get_sampling(image)) == (Image.open(stream).quantization, 0)


def test_a_webp_with_loss_stays_so(tmp_path, capsys):
    image, source, target = photograph(3), tmp_path / "in.webp", tmp_path / "out.webp"

    def is_lossless(*options):
        done(capsys, "warp", source, target, *POINT, *options)
        return b"VP8L" in target.read_bytes()[:40]

    profile = {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"}
    for lossless, more in ((True, {}), (False, {}), (True, profile), (False, profile)):
        image.save(source, lossless=lossless, **more)
        assert is_lossless() == lossless
        assert is_lossless("--compression", "lossless")
        np.testing.assert_array_equal(load(target), load(source))
        assert not is_lossless("--compression", "lossy")
        assert not is_lossless("--quality", 60)


def test_a_png_keeps_its_level(tmp_path, capsys):
    """As far as zlib states it, in two bits."""
    for dtype in ("uint8", "uint16"):
        for level, stated in ((1, 0), (4, 1), (6, 2), (9, 3)):
            options = ("--compression", level)
            save(tmp_path / "start.png", noise(3, dtype))
            done(capsys, "warp", tmp_path / "start.png", tmp_path / "in.png", *POINT, *options)
            done(capsys, "warp", tmp_path / "in.png", tmp_path / "out.png", *POINT)
            for path in (tmp_path / "in.png", tmp_path / "out.png"):
                data = path.read_bytes()
                assert data[data.index(b"IDAT") + 5] >> 6 == stated, (dtype, level)
                np.testing.assert_array_equal(load(path), noise(3, dtype))
    assert codecs.of_png(b"") == codecs.of_webp(b"RIFF" + struct.pack("<I", 4)) == codecs.of_png(b"xIDAT")


def test_formats_of_a_folder_take_what_is_theirs(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    save(tmp_path / "in" / "a.png", noise(3))
    save(tmp_path / "in" / "b.tif", noise(3))
    code, _, err = run(capsys, "warp", tmp_path / "in", tmp_path / "out", *POINT, "--compression", "lzw")
    assert (code, err) == (0, "")
    assert tag_of(tmp_path / "out" / "b.tif") == [5]
