"""Pictures that are broken, cut off or too deep are refused or said to be; nothing that a user has is overwritten."""

import errno
import io
import os
import signal
import struct
import zlib

import imagecodecs
import numpy as np
import pytest
import tifffile
from PIL import Image, features

from jaxtex.cli.files.codecs import read_picture
from jaxtex.cli.files.large_tiff import TiledOutput
from jaxtex.cli.process import UserError
from tests.cli.odd_files import chunk, photograph
from tests.cli.test_cli import HEIGHT, POINT, WIDTH, done, load, noise, raising, refused, run, save
from tests.cli.test_cli_folders import start
from tests.support.tolerances import assert_codes_close, assert_exact

pytestmark = pytest.mark.usefixtures("on_a_cpu")


def raw_png(size, depth, interlace, rows):
    """A PNG of RGB whose chunks are whole, and so is the stream of its rows."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", *size, depth, 2, 0, 0, interlace))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_a_png_without_all_rows_is_refused(tmp_path):
    for depth, interlace in ((8, 0), (8, 1), (16, 0)):
        rows = b"".join(b"\0" + bytes(WIDTH * 3 * depth // 8) for _ in range(HEIGHT // 2))
        (tmp_path / "in.png").write_bytes(raw_png((WIDTH, HEIGHT), depth, interlace, rows))
        with pytest.raises(UserError, match=r"cannot read .*: it is broken"):
            read_picture(tmp_path / "in.png")


ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


@pytest.mark.parametrize("size", [(13, 9), (1, 1), (3, 70)])
def test_an_interlaced_png_and_one_with_odd_chunks_are_read_without_a_word(tmp_path, capfd, size):
    width, height = size
    pixels = noise(3, height=height, width=width)
    passes = [pixels[y::down, x::across] for x, y, across, down in ADAM7]
    rows = b"".join(b"\0" + row.tobytes() for part in passes if part.size for row in part)
    (tmp_path / "in.png").write_bytes(raw_png(size, 8, 1, rows))
    assert_exact(read_picture(tmp_path / "in.png").pixels, pixels)
    odd = chunk(b"iCCP", b"x\0\0broken") + chunk(b"sBIT", bytes(9)) + chunk(b"gAMA", bytes(4))
    data = save(tmp_path / "in.png", pixels).read_bytes()
    (tmp_path / "in.png").write_bytes(data[:33] + odd + data[33:])
    assert_exact(read_picture(tmp_path / "in.png").pixels, pixels)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("channels", "progressive"), [(1, True), (3, False), (3, True)])
def test_a_jpeg_is_refused_where_pixels_are_missing_and_not_for_what_follows(tmp_path, channels, progressive):
    """With an end of image behind the cut, or a preview that is whole; a phone's film has all pairs of bytes."""
    path, preview = tmp_path / "in.jpg", io.BytesIO()
    photograph(3, 8, 8).save(preview, "JPEG")
    photograph(channels, 120, 160).save(
        path, quality=90, progressive=progressive, exif=b"Exif\0\0" + preview.getvalue()
    )
    data, pixels, end = path.read_bytes(), read_picture(path).pixels, b"\xff\xd9"
    cuts = (data[:-2], data[: len(data) // 2]) if channels == 3 else ()
    for cut in (*cuts, *(data[: int(len(data) * share)] + end for share in (0.5, 0.9))):
        path.write_bytes(cut)
        with pytest.raises(UserError, match="pixels are missing" if cut.endswith(end) else "cannot read"):
            read_picture(path)
    for film in (b"\xff\xd9\xff\xda film", b"film \xff\xda \xff\xd9"):
        path.write_bytes(data + film)
        assert_exact(read_picture(path).pixels, pixels)
    Image.new("RGB", (40, 40), (128, 128, 128)).save(path)  # the color that fills what is missing
    assert (read_picture(path).pixels == 128).all()


def test_a_damaged_tile_is_a_sentence(tmp_path, capsys):
    path, pixels = tmp_path / "in.tif", np.asarray(photograph(3, 180, 260))
    tifffile.imwrite(path, pixels, photometric="rgb", compression="zlib", tile=(64, 64), metadata=None)
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as file:
        at, count = file.pages[0].dataoffsets[4], file.pages[0].databytecounts[4]
    data[at : at + count] = bytes(count)
    path.write_bytes(data)
    words = refused(capsys, "rotate", path, tmp_path / "out.tif", "--angle", 9, "--tile")
    assert words.startswith(f"cannot read {path}: it is broken or of an unsupported kind, ")
    assert not (tmp_path / "out.tif").exists()


def deep(kind):
    """A file of 16 bits, or 10, and its pixels."""
    pixels = noise(3, "uint16", 20, 30)
    if kind == "pgm":
        return b"P5\n30 20\n65535\n" + pixels[..., :1].astype(">u2").tobytes(), pixels[..., :1]
    if kind == "ppm":
        return b"P6\n# words 8\n30 20\n65535\n" + pixels.astype(">u2").tobytes(), pixels
    if kind == "avif":
        return imagecodecs.avif_encode(pixels >> 6, level=95, bitspersample=10), pixels
    pixels = pixels[..., :1] if kind == "gray jp2" else pixels
    bare = pixels[..., 0] if kind == "gray jp2" else pixels
    return imagecodecs.jpeg2k_encode(bare, level=0, codecformat=kind.split()[-1]), pixels


@pytest.mark.parametrize(
    ("kind", "bits"), [("pgm", 0), ("gray jp2", 0), ("ppm", 16), ("jp2", 16), ("j2k", 16), ("avif", 10)]
)
def test_bits_are_kept_or_said_to_be_lost(tmp_path, kind, bits):
    if kind == "avif" and not features.check("avif"):
        pytest.skip("this Pillow reads no AVIF")
    data, pixels = deep(kind)
    path = tmp_path / f"in.{kind.split()[-1]}"
    path.write_bytes(data)
    picture = read_picture(path)
    assert picture.notes == ((f"is reduced from {bits} to 8 bits",) if bits else ())
    if not bits:
        assert_exact(picture.pixels, pixels)
    assert picture.pixels.dtype == (np.uint8 if bits else np.uint16)


def test_ycbcr_is_read_in_tiles_as_in_the_whole(tmp_path, capsys):
    source, pixels = tmp_path / "in.tif", np.asarray(photograph(3, 180, 260))
    stored = np.asarray(photograph(3, 180, 260).convert("YCbCr"))
    jpeg = {"compression": "jpeg", "compressionargs": {"level": 95}, "photometric": "ycbcr", "metadata": None}
    for layout in ({"tile": (64, 64), "subsampling": (2, 2)}, {"rowsperstrip": 48, "subsampling": (1, 1)}):
        tifffile.imwrite(source, stored, **jpeg, **layout)
        for name, more in (("whole.tif", ()), ("tiles.tif", ("--tile",))):
            done(capsys, "warp", source, tmp_path / name, *POINT, *more, "--overwrite")
        assert_exact(load(tmp_path / "tiles.tif"), load(tmp_path / "whole.tif"))
        assert np.abs(load(tmp_path / "whole.tif").astype(int) - pixels).mean() < 6


def test_an_input_is_replaced_only_on_request(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "b.png"):
        save(tmp_path / name, noise(3))
    (tmp_path / "link.png").symlink_to("a.png")
    (tmp_path / "folder").mkdir()
    save(tmp_path / "folder" / "c.png", noise(3))
    for words in (
        *(("a.png", "a.png"), ("a.png", "."), ("a.png", "link.png"), ("a.png", "b.png", "."), ("folder", "folder")),
        *(("folder/c.png", "a.png", "folder"), ("a.png", "b.png", "b.png", "--preview")),
    ):
        assert "is also an input" in refused(capsys, "warp", *words, "--translate", 1, 0, *POINT)
        np.testing.assert_array_equal(load(tmp_path / "a.png"), noise(3))
    assert run(capsys, "warp", "a.png", "b.png", ".", "--translate", 1, 0, *POINT, "--overwrite")[0] == 0
    for name in ("a.png", "b.png"):
        np.testing.assert_array_equal(load(tmp_path / name)[:, 1:], noise(3)[:, :-1])
    assert run(capsys, "warp", "folder", "folder", "--translate", 1, 0, *POINT, "--overwrite")[0] == 0


def test_what_a_folder_holds_is_replaced_only_on_request(tmp_path, capsys, monkeypatch):
    """Two cards of one counter, and a name that the user did not give."""
    monkeypatch.chdir(tmp_path)
    for number, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        for name in ("1.png", "2.png"):
            save(tmp_path / folder / name, np.full((4, 4, 3), number, np.uint8))
    assert run(capsys, "warp", "a", "all", *POINT)[0] == 0
    for words, others in (
        (("b", "all"), "all/1.png and 1 other outputs exist already"),
        (("b/2.png", "a/1.png", "all"), "all/2.png and 1 other outputs exist already"),
        (("b/2.png", "all"), "all/2.png exists already"),
        (("b/1.png", "all", "--force"), "add --overwrite to replace what is there, or --skip-existing to keep it"),
    ):
        assert others in refused(capsys, "warp", *words, *POINT)
    for more, shown in (("--skip-existing", 0), ("--overwrite", 1)):
        assert run(capsys, "warp", "b", "all", *POINT, more)[0] == 0
        assert run(capsys, "warp", "b/1.png", "all", *POINT, more)[0] == 0
        assert {int(load(tmp_path / "all" / name).max()) for name in ("1.png", "2.png")} == {shown}
    for _ in range(2):  # the name of a file is given, and what has it is replaced
        assert run(capsys, "warp", "a/1.png", "all/1.png", *POINT)[0] == 0
        assert run(capsys, "warp", "a", "preview.png", "--preview", *POINT)[0] == 0
    assert load(tmp_path / "all" / "1.png").max() == 0


def test_nine_numbers_are_a_homography(tmp_path, capsys):
    source, names = save(tmp_path / "in.png", noise(3, height=24, width=32)), [tmp_path / f"{k}.png" for k in range(2)]
    matrix = np.array([[1.1, 0.1, -2], [-0.05, 0.9, 3], [0.004, -0.002, 1]])
    corners = np.array([(0.0, 0), (32, 0), (32, 24), (0, 24)])
    x, y, w = matrix @ np.column_stack([corners, np.ones(4)]).T
    pairs = [f"{a},{b}:{u},{v}" for (a, b), u, v in zip(corners.tolist(), (x / w).tolist(), (y / w).tolist())]
    assert run(capsys, "warp", source, names[0], "--matrix", *matrix.flat)[0] == 0
    assert run(capsys, "warp", "--perspective", *pairs, source, names[1])[0] == 0
    assert_codes_close("point", load(names[0]), load(names[1]), 255 * 32)
    # The sign of a homography means nothing, and one without a third row is an affine matrix.
    done(capsys, "warp", "--matrix", *(-matrix).flat, source, names[1])
    assert_exact(load(names[0]), load(names[1]))
    done(capsys, "warp", "--matrix", 2, 0, 4, 0, 2, -2, 0, 0, 2, source, names[0], *POINT)
    # Six of them, and elements between commas, which may begin with a minus.
    for matrix in (("--matrix", 1, 0, 2, 0, 1, -1), ("--matrix", "1,0,2,0,1,-1"), ("--matrix=-1,0,-2,0,-1,1,0,0,-1",)):
        done(capsys, "warp", *matrix, source, names[1], *POINT)
        assert_exact(load(names[0]), load(names[1]))


def test_the_size_in_the_report_is_that_of_the_file(tmp_path, capsys):
    source, out = save(tmp_path / "in.png", noise(3)), tmp_path / "out.png"
    for options, size in ((("--compare",), "21x9"), (("--preview",), "21x9"), ((), "12x9")):
        assert f" -> {out} {size}: " in done(capsys, "warp", source, out, "--size", "12x9", *POINT, *options)
        assert "x".join(map(str, load(out).shape[1::-1])) == size


def test_a_full_disk_under_tile_says_how_to_continue(tmp_path, capsys, monkeypatch):
    tifffile.imwrite(tmp_path / "in.tif", noise(3, height=180, width=260), photometric="rgb", metadata=None)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(TiledOutput, "numbers", lambda *_: [(0, 0, 0)])
    monkeypatch.setattr("jaxtex.cli.files.large_tiff.encoded", raising(full))
    words = refused(capsys, "warp", tmp_path / "in.tif", tmp_path / "out.tif", "--tile", *POINT)
    assert words.startswith(f"cannot write {tmp_path / 'out.tif'}: No space left on device; run it again with --resume")


def test_an_interrupt_while_jax_is_imported_ends_at_once(tmp_path):
    """No exception waits until the import ends."""
    code = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupt:
    def find_spec(self, name, *_):
        if name == "jax":
            signal.raise_signal(signal.SIGINT)
            print("it went on")
sys.meta_path.insert(0, Interrupt())
"""
    process = start("warp", save(tmp_path / "in.png", noise(1)), tmp_path / "out.png", code=code)
    assert process.communicate() == ("", "jaxtex: error: interrupted\n")
    assert process.returncode == 128 + signal.SIGINT
