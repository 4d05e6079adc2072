"""Pictures that are broken, cut off or too deep are refused or said to be; nothing that a user has is overwritten."""

import errno
import os
import signal
import struct
import zlib

import imagecodecs
import jax
import numpy as np
import pytest
import tifffile
from PIL import Image, features

from jaxtex.cli.files.decode import read_picture
from jaxtex.cli.files.tiled_output import TiledOutput
from jaxtex.cli.process import UserError
from tests.cli.odd_files import chunk
from tests.cli.test_cli import HEIGHT, WIDTH, load, noise, run, save
from tests.cli.test_cli_folders import start
from tests.cli.test_cli_warps import photograph
from tests.support.tolerances import assert_codes_close, assert_exact

POINT = ("--filter", "point")


# Files that are cut off


@pytest.mark.parametrize(("depth", "interlace"), [(8, 0), (8, 1), (16, 0)])
def test_a_png_without_all_rows_is_refused(tmp_path, depth, interlace):
    """Its chunks are whole, and so is the stream of what it has."""
    rows = b"".join(b"\0" + bytes(WIDTH * 3 * depth // 8) for _ in range(HEIGHT // 2))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, 2, 0, 0, interlace))
    (tmp_path / "in.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )
    with pytest.raises(UserError, match=r"cannot read .*: it is broken"):
        read_picture(tmp_path / "in.png")


ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


@pytest.mark.parametrize("size", [(13, 9), (1, 1), (3, 70)])
def test_an_interlaced_png_and_one_with_odd_chunks_are_read_without_a_word(tmp_path, capfd, size):
    width, height = size
    pixels = noise(3, height=height, width=width)
    passes = [pixels[y::down, x::across] for x, y, across, down in ADAM7]
    rows = b"".join(b"\0" + row.tobytes() for part in passes if part.size for row in part)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1))
    end = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    (tmp_path / "in.png").write_bytes(b"\x89PNG\r\n\x1a\n" + head + end)
    assert_exact(read_picture(tmp_path / "in.png").pixels, pixels)
    odd = chunk(b"iCCP", b"x\0\0broken") + chunk(b"sBIT", bytes(9)) + chunk(b"gAMA", bytes(4))
    data = save(tmp_path / "in.png", pixels).read_bytes()
    (tmp_path / "in.png").write_bytes(data[:33] + odd + data[33:])
    assert_exact(read_picture(tmp_path / "in.png").pixels, pixels)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_jpeg_that_ends_inside_its_scan_is_refused(tmp_path, progressive, channels, share):
    """With an end of image behind the cut."""
    path = tmp_path / "in.jpg"
    photograph(channels, 120, 160).save(path, quality=90, progressive=progressive)
    data = path.read_bytes()
    read_picture(path)
    path.write_bytes(data[: int(len(data) * share)] + b"\xff\xd9")
    with pytest.raises(UserError, match="pixels are missing"):
        read_picture(path)


@pytest.mark.parametrize("progressive", [False, True])
def test_what_follows_a_jpeg_does_not_matter(tmp_path, progressive):
    """As the film behind a photograph of a phone, in which there are all pairs of bytes."""
    path = tmp_path / "in.jpg"
    photograph(3).save(path, progressive=progressive)
    pixels = read_picture(path).pixels
    for film in (b"\xff\xd9\xff\xda film", b"film \xff\xda \xff\xd9"):
        path.write_bytes(path.read_bytes() + film)
        assert_exact(read_picture(path).pixels, pixels)


def test_a_gray_jpeg_is_no_broken_one(tmp_path):
    """It has the color that fills what is missing."""
    Image.new("RGB", (40, 40), (128, 128, 128)).save(tmp_path / "in.jpg")
    assert (read_picture(tmp_path / "in.jpg").pixels == 128).all()


@pytest.mark.parametrize("compression", ["jpeg", "zlib"])
def test_a_damaged_tile_is_a_sentence(tmp_path, capsys, compression):
    path, pixels = tmp_path / "in.tif", np.asarray(photograph(3, 180, 260))
    tifffile.imwrite(path, pixels, photometric="rgb", compression=compression, tile=(64, 64), metadata=None)
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as file:
        at, count = file.pages[0].dataoffsets[4], file.pages[0].databytecounts[4]
    data[at : at + count] = bytes(count)
    path.write_bytes(data)
    code, out, err = run(capsys, "rotate", path, tmp_path / "out.tif", "--angle", 9, "--tile")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"jaxtex: error: cannot read {path}: it is broken or of an unsupported kind, ")
    assert not (tmp_path / "out.tif").exists()


# Depths and colors


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


@pytest.mark.parametrize("subsampling", [(1, 1), (2, 2)])
@pytest.mark.parametrize("options", [{"tile": (64, 64)}, {"rowsperstrip": 48}])
def test_ycbcr_is_read_in_tiles_as_in_the_whole(tmp_path, capsys, subsampling, options):
    source, pixels = tmp_path / "in.tif", np.asarray(photograph(3, 180, 260))
    options |= {"compression": "jpeg", "compressionargs": {"level": 95}, "subsampling": subsampling}
    stored = np.asarray(photograph(3, 180, 260).convert("YCbCr"))
    tifffile.imwrite(source, stored, photometric="ycbcr", metadata=None, **options)
    for name, more in (("whole.tif", ()), ("tiles.tif", ("--tile",))):
        assert run(capsys, "warp", source, tmp_path / name, *POINT, *more)[0] == 0
    assert_exact(load(tmp_path / "tiles.tif"), load(tmp_path / "whole.tif"))
    assert np.abs(load(tmp_path / "whole.tif").astype(int) - pixels).mean() < 6


@pytest.mark.parametrize(
    ("dtype", "shape"), [("float32", (9, 6, 3)), ("float64", (9, 6)), ("uint32", (9, 6)), ("int16", (9, 6))]
)
def test_other_numbers_are_refused_by_their_kind(tmp_path, capsys, dtype, shape):
    photometric = "rgb" if len(shape) == 3 else "minisblack"
    tifffile.imwrite(tmp_path / "in.tif", np.ones(shape, dtype), photometric=photometric)
    for more in ((), ("--tile",)):
        code, _, err = run(capsys, "warp", tmp_path / "in.tif", tmp_path / "out.tif", *more)
        assert (code, err.count("\n")) == (2, 1)
        assert f"its pixels are {photometric.upper()} of {dtype}, and {more[0] if more else 'jaxtex'} reads gray" in err


# Originals


def test_an_input_is_replaced_only_on_request(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "b.png"):
        save(tmp_path / name, noise(3))
    (tmp_path / "link.png").symlink_to("a.png")
    (tmp_path / "folder").mkdir()
    save(tmp_path / "folder" / "c.png", noise(3))
    for words in (
        ("a.png", "b.png", "."),
        ("a.png", "a.png"),
        ("a.png", "."),
        ("a.png", "link.png"),
        ("folder", "folder"),
        ("folder/c.png", "a.png", "folder"),
        ("a.png", "b.png", "b.png", "--preview"),
    ):
        code, out, err = run(capsys, "warp", *words, "--translate", 1, 0, *POINT)
        assert (code, out, err.count("\n"), "is also an input" in err) == (2, "", 1, True), words
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
        code, out, err = run(capsys, "warp", *words, *POINT)
        assert (code, out, err.count("\n"), others in err) == (2, "", 1, True), words
    for more, shown in (("--skip-existing", 0), ("--overwrite", 1)):
        assert run(capsys, "warp", "b", "all", *POINT, more)[0] == 0
        assert run(capsys, "warp", "b/1.png", "all", *POINT, more)[0] == 0
        assert {int(load(tmp_path / "all" / name).max()) for name in ("1.png", "2.png")} == {shown}
    for _ in range(2):  # the name of a file is given, and what has it is replaced
        assert run(capsys, "warp", "a/1.png", "all/1.png", *POINT)[0] == 0
        assert run(capsys, "warp", "a", "preview.png", "--preview", *POINT)[0] == 0
    assert load(tmp_path / "all" / "1.png").max() == 0


# Matrices and sizes


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
    assert run(capsys, "warp", "--matrix", *(-matrix).flat, source, names[1])[0] == 0
    assert_exact(load(names[0]), load(names[1]))
    assert run(capsys, "warp", "--matrix", 2, 0, 4, 0, 2, -2, 0, 0, 2, source, names[0], *POINT)[0] == 0
    # Six of them, and elements between commas, which may begin with a minus.
    for matrix in (("--matrix", 1, 0, 2, 0, 1, -1), ("--matrix", "1,0,2,0,1,-1"), ("--matrix=-1,0,-2,0,-1,1,0,0,-1",)):
        assert run(capsys, "warp", *matrix, source, names[1], *POINT)[0] == 0
        assert_exact(load(names[0]), load(names[1]))
    for elements, words in (("000000001", "singular"), ("111222333", "singular"), (["1e38"] * 8 + ["1"], "singular")):
        code, _, err = run(capsys, "warp", source, tmp_path / "out.png", "--matrix", *elements)
        assert (code, err.count("\n"), words in err) == (2, 1, True)


@pytest.mark.parametrize(
    ("options", "size"),
    [(("--compare",), "21x9"), (("--preview",), "21x9"), ((), "12x9")],
)
def test_the_size_in_the_report_is_that_of_the_file(tmp_path, capsys, options, size):
    source = save(tmp_path / "in.png", noise(3))
    code, out, _ = run(capsys, "warp", source, tmp_path / "out.png", "--size", "12x9", *POINT, *options)
    assert code == 0
    assert f" -> {tmp_path / 'out.png'} {size}: " in out
    assert "x".join(map(str, load(tmp_path / "out.png").shape[1::-1])) == size


def test_enlarge_needs_fit(tmp_path, capsys):
    code, _, err = run(
        capsys, "resize", save(tmp_path / "in.png", noise(1)), tmp_path / "o.png", "--scale", 2, "--enlarge"
    )
    assert (code, "--enlarge has no effect without --fit" in err) == (2, True)


# Stops


def test_a_full_disk_under_tile_says_how_to_continue(tmp_path, capsys, monkeypatch):
    tifffile.imwrite(tmp_path / "in.tif", noise(3, height=180, width=260), photometric="rgb", metadata=None)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(TiledOutput, "numbers", lambda *_: [(0, 0, 0)])
    monkeypatch.setattr("jaxtex.cli.files.tiled_output.encoded", full)
    code, _, err = run(capsys, "warp", tmp_path / "in.tif", tmp_path / "out.tif", "--tile", *POINT)
    assert code == 2
    assert err == (
        f"jaxtex: error: cannot write {tmp_path / 'out.tif'}: No space left on device; run it again with --resume to "
        "write only the tiles that are missing\n"
    )


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


@pytest.fixture(autouse=True)
def on_a_cpu():
    with jax.default_device(jax.devices("cpu")[0]):
        yield
