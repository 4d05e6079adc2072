"""Files of several pages: each is warped, and the output has as many; a format without pages is refused."""

import io
import signal
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import tifffile
from PIL import Image, ImageSequence

from jaxtex.cli import main, pipeline
from jaxtex.cli.files import tiff
from jaxtex.cli.files.metadata import Metadata, Picture
from tests.cli import odd_files
from tests.cli.odd_files import ODD_FILES, make
from tests.cli.test_cli import POINT, done, failing_at, listing, load, noise, raising, refused, run, save
from tests.cli.test_cli_photographs import Stream
from tests.cli.test_cli_warps import counted

PAGED = [name for name, odd in ODD_FILES.items() if odd.pages > 1 and not odd.error]


def pages_in(path: Path | io.BytesIO) -> list[np.ndarray]:
    """The pages of a TIFF as tifffile reads them, (height, width, channels), without smaller copies."""
    with tifffile.TiffFile(path) as tiff:
        stored = [page.asarray() for page in tiff.pages if not page.is_reduced]
    return [page.reshape(*page.shape[:2], -1) for page in stored]


def fax_pages(path: Path) -> list[np.ndarray]:
    """The pages of a fax as Pillow reads them, since not every tifffile has the codec."""
    with Image.open(path) as image:
        return [np.asarray(page.convert("L"))[..., None] for page in ImageSequence.Iterator(image)]


def assert_pages(path: Path | io.BytesIO, expected: list[np.ndarray]) -> None:
    found = pages_in(path)
    assert len(found) == len(expected)
    for page, image in zip(found, expected):
        assert page.dtype == image.dtype
        np.testing.assert_array_equal(page, image)


def multipage(path: Path, *images: np.ndarray, **options: object) -> Path:
    path.write_bytes(odd_files.pages_of(*images, **options))
    return path


@pytest.mark.parametrize("name", PAGED)
def test_every_page_is_warped(tmp_path, capfd, name):
    """Pages of all sizes and depths; libraries write nothing past Python."""
    source, target, odd = make(name, tmp_path), tmp_path / "out.tif", ODD_FILES[name]
    code, out, err = run(capfd, "warp", source, target, *POINT)
    assert (code, out.count("\n")) == (0, 1)
    assert out.startswith(f"{name} {odd.pages} pages -> {target} {odd.pages} pages")
    notes = odd.notes.get(".tif", "")
    assert err == (f"jaxtex: note: {name} {notes}\n" if notes else "")
    expected = fax_pages(source) if name == "fax.tif" else pages_in(source)
    assert_pages(target, expected)
    with tifffile.TiffFile(target) as written:
        assert [(page.tags[254].value, page.tags[297].value) for page in written.pages] == [
            (2, (k, odd.pages)) for k in range(odd.pages)
        ]
    with Image.open(target) as image:
        assert image.n_frames == odd.pages
        for k, page in enumerate(expected):
            image.seek(k)
            assert image.size == page.shape[1::-1]


def test_a_page_is_chosen_among_the_pages_that_are_no_copies(tmp_path, capsys):
    source = make("pages and copies.tif", tmp_path)
    assert run(capsys, "warp", source, tmp_path / "out.tif", "--page", 2, *POINT)[0] == 0
    assert_pages(tmp_path / "out.tif", [255 - odd_files.pixels()])


def test_each_page_keeps_its_own_metadata(tmp_path, capsys):
    """Orientation, description, XMP, profile and resolution; notes name the page if not all have them."""
    georeference = (33550, 12, 3, (1.0, 1.0, 0.0), True)
    with tifffile.TiffWriter(tmp_path / "in.tif", byteorder=">") as writer:
        page = {"photometric": "rgb", "metadata": None}
        writer.write(noise(3), description="first", extratags=[(274, 3, 1, 6, True), georeference], **page)
        writer.write(noise(3, "uint16"), description="second", resolution=(300, 150), resolutionunit="INCH", **page)
        tags = [(700, 1, len(odd_files.XMP % 3), odd_files.XMP % 3, True), georeference]
        writer.write(noise(3)[:2], iccprofile=odd_files.RGB_PROFILE, extratags=tags, **page)
    code, _, err = run(capsys, "warp", tmp_path / "in.tif", tmp_path / "out.tif", *POINT)
    assert code == 0
    assert err == "jaxtex: note: in.tif (pages 1, 3) is written as TIFF without its georeference\n"
    assert_pages(tmp_path / "out.tif", [noise(3)[::-1].swapaxes(0, 1), noise(3, "uint16"), noise(3)[1::-1, ::-1]])
    with tifffile.TiffFile(tmp_path / "out.tif") as tiff:
        first, second, third = (page.tags for page in tiff.pages)
        assert [tags.valueof(270) for tags in (first, second, third)] == ["first", "second", None]
        assert [tags.valueof(274, 1) for tags in (first, second, third)] == [1, 1, 1]
        assert (second.valueof(282), second.valueof(283)) == ((300, 1), (150, 1))
        assert [bytes(tags.valueof(34675, b"")) for tags in (first, second, third)] == [b"", b"", odd_files.RGB_PROFILE]
        assert bytes(third.valueof(700)) == odd_files.XMP % 1
    assert run(capsys, "warp", tmp_path / "in.tif", tmp_path / "out.tif", *POINT, "--strip")[0] == 0
    with tifffile.TiffFile(tmp_path / "out.tif") as tiff:
        assert not any(page.tags.valueof(tag) for page in tiff.pages for tag in (270, 700))
        assert bytes(tiff.pages[2].tags.valueof(34675)) == odd_files.RGB_PROFILE


def test_pages_are_joined_to_a_file_of_any_size(tmp_path):
    """Offsets have eight bytes where four might not do; EXIF stays readable."""
    images = [noise(3), noise(1, "uint16", 70, 300), noise(4)]
    with open(tmp_path / "out.tif", "w+b") as file:
        writer = tiff.PageWriter(file, len(images) + 1, 2**33)
        for image in images:
            writer.append(Picture(image), tiff.compressed_strips(image))
        pictured = Picture(images[0], metadata=Metadata("JPEG", odd_files.exif(6)))
        writer.append(pictured, tiff.compressed_strips(images[0]))
    with tifffile.TiffFile(tmp_path / "out.tif") as written:
        assert written.is_bigtiff
        for page, image in zip(written.pages, images):
            np.testing.assert_array_equal(page.asarray().reshape(image.shape), image)
        assert written.pages[3].tags[34665].value["DateTimeOriginal"] == odd_files.DATE
    with Image.open(tmp_path / "out.tif") as image:
        image.seek(3)
        assert image.getexif().get_ifd(34853)[2] == odd_files.LATITUDE


def test_large_outputs_get_long_offsets(tmp_path, capsys, monkeypatch):
    """As far as sizes and depths tell before anything is warped."""
    source = multipage(tmp_path / "in.tif", noise(3, "uint16"), noise(3, "uint16"))
    most = 2 * 54 * 3 * 2 * 4  # bytes, for a scale of 2
    for limit, is_big in ((most, False), (most - 1, True)):
        monkeypatch.setattr(tiff, "LARGEST_CLASSIC", limit)
        assert run(capsys, "resize", source, tmp_path / "out.tif", "--scale", 2, *POINT)[0] == 0
        with tifffile.TiffFile(tmp_path / "out.tif") as written:
            assert written.is_bigtiff == is_big
            assert written.pages[1].asarray().shape == (12, 18, 3)


def test_sizes_and_pictures_beside_them_follow_each_page(tmp_path, capsys):
    source = multipage(tmp_path / "in.tif", noise(1), noise(1, height=4, width=4))
    code, out, _ = run(capsys, "rotate", source, tmp_path / "out.tif", "--angle", 90, "--expand", "--compare", *POINT)
    assert code == 0
    first, second = pages_in(tmp_path / "out.tif")
    np.testing.assert_array_equal(first[:, 9:], np.rot90(noise(1)))
    np.testing.assert_array_equal(second[:, 4:], np.rot90(noise(1, height=4, width=4)))
    assert "2 pages: " in out


def test_a_preview_shows_the_first_page(tmp_path, capsys):
    source = multipage(tmp_path / "in.tif", noise(3), 255 - noise(3))
    code, _, err = run(capsys, "warp", source, tmp_path / "out.png", "--preview", *POINT)
    assert (code, err) == (0, "jaxtex: note: in.tif has 2 pages, of which the first is shown\n")
    np.testing.assert_array_equal(load(tmp_path / "out.png"), np.concatenate([noise(3), noise(3)], axis=1))


def test_pages_go_through_pipes(tmp_path, capsys, monkeypatch):
    source, stdout = multipage(tmp_path / "in.tif", noise(3), noise(1)), Stream()
    monkeypatch.setattr(sys, "stdin", Stream(source.read_bytes()))
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main(["warp", "-", "-", *POINT, "--format", "tif"]) == 0
    assert_pages(io.BytesIO(stdout.buffer.getvalue()), [noise(3), noise(1)])


def test_a_folder_has_files_of_one_and_of_several_pages(tmp_path, capsys):
    """A page that cannot be read is one error and no file; the others are whole."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    save(folder / "a.png", noise(3))
    multipage(folder / "b.tif", noise(3), noise(1), noise(4, "uint16"))
    multipage(folder / "c.tif", noise(1), noise(1).astype(np.float32), noise(1))
    multipage(folder / "d.tif", noise(1), noise(3))
    save(folder / "e.png", noise(1))
    (folder / "d.tif").chmod(0o600)
    code, report, err = run(capsys, "warp", folder, out, *POINT, "--verbose", "--jobs", 2)
    assert (code, err.count("\n")) == (2, 1)
    assert f"cannot read {folder / 'c.tif'} (page 2): its pixels are MINISBLACK of float32" in err
    assert "4 warped, 1 failed" in report
    assert f"{folder / 'd.tif'} -> {out / 'd.tif'}: 2 pages of 9x6\n" in report
    assert listing(out) == ["a.png", "b.tif", "d.tif", "e.png"]
    assert_pages(out / "b.tif", [noise(3), noise(1), noise(4, "uint16")])
    assert_pages(out / "d.tif", [noise(1), noise(3)])
    assert (out / "d.tif").stat().st_mode & 0o777 == 0o600
    code, _, err = run(capsys, "warp", folder, tmp_path / "png", *POINT, "--format", "png")
    assert (code, err.count("it has 2 pages, and PNG stores one")) == (2, 1)
    assert listing(tmp_path / "png") == ["a.png", "e.png"]


def test_a_page_that_is_too_large_is_refused_before_any_work(tmp_path, capsys, monkeypatch):
    source = multipage(tmp_path / "in.tif", noise(1), noise(1), noise(1, height=20, width=20))
    monkeypatch.setattr(pipeline, "read_picture", lambda *_: pytest.fail("read"))
    err = refused(capsys, "warp", source, tmp_path / "out.tif", "--max-pixels", 300)
    assert err.startswith(f"cannot read {source} (page 3): 20x20 are 0.0004 million pixels")


def test_few_pages_are_in_memory_at_once(tmp_path, capsys, monkeypatch):
    """Pages are written as they come: none waits for the last one."""
    source = multipage(tmp_path / "in.tif", *(np.full((4, 4), k, np.uint8) for k in range(40)))
    alive = [0]
    monkeypatch.setattr(pipeline, "read_picture", counted(pipeline.read_picture, 1, alive))
    monkeypatch.setattr(tiff.PageWriter, "append", counted(tiff.PageWriter.append, -1, alive))
    done(capsys, "warp", source, tmp_path / "out.tif", *POINT, "--jobs", 1)
    assert alive[-1] == 0
    assert max(alive) <= 2 * (1 + pipeline.AHEAD) + 2
    assert [page.flat[0] for page in pages_in(tmp_path / "out.tif")] == list(range(40))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, None])
def test_a_stop_between_pages_leaves_the_old_file(tmp_path, capsys, monkeypatch, number):
    """A signal behind the third page, or a full disk."""
    source, target = multipage(tmp_path / "in.tif", *[noise(1)] * 9), save(tmp_path / "out.tif", noise(3))

    class Writer(tiff.PageWriter):
        def append(self, *page):
            super().append(*page)
            if self.number == 3:
                signal.raise_signal(number) if number else raising(OSError(28, "No space left on device"))()

    monkeypatch.setattr(pipeline, "PageWriter", Writer)
    before = signal.signal(number or signal.SIGINT, signal.default_int_handler)
    try:
        words = refused(capsys, "warp", source, target, *POINT, code=128 + number if number else 2)
    finally:
        signal.signal(number or signal.SIGINT, before)
    assert number or words == f"cannot write {target}: No space left on device\n"
    assert listing(tmp_path) == ["in.tif", "out.tif"]
    np.testing.assert_array_equal(load(target), noise(3))


def test_a_device_that_fails_at_a_page_is_a_sentence(tmp_path, capsys, monkeypatch):
    source = multipage(tmp_path / "in.tif", *[noise(1)] * 3)
    full = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nallocating 1 byte.")
    monkeypatch.setattr(pipeline, "warp", failing_at([2], full, pipeline.warp))
    monkeypatch.setattr(pipeline, "THREADS", 1)
    assert f"cannot warp {source} (page 2): " in refused(capsys, "warp", source, tmp_path / "out.tif", *POINT)
    assert listing(tmp_path) == ["in.tif"]
