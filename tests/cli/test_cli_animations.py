"""Animations: every frame is warped, and the output shows them as long and as often, as Pillow plays it."""

import sys

import numpy as np
import pytest
from PIL import Image

from jaxtex.cli import main
from jaxtex.cli.files.animations import fit_colors
from tests.cli import odd_files
from tests.cli.test_cli import POINT, done, load, noise, refused, run
from tests.cli.test_cli_photographs import Stream

SUFFIXES = (".gif", ".webp", ".png")
FORMATS = {".gif": "GIF", ".webp": "WEBP", ".png": "PNG"}
SHOWN = [100, 250, 40, 500]


def few_colors(channels: int) -> list[np.ndarray]:
    """Frames of noise in few colors; with alpha, of clear and opaque pixels that change."""
    random = np.random.default_rng(channels)
    palette = random.integers(0, 255, (40, 3), np.uint8, endpoint=True)
    frames = [palette[random.integers(0, 40, (6, 9))] for _ in SHOWN]
    if channels == 4:
        alpha = [random.integers(0, 2, (6, 9, 1), np.uint8) * 255 for _ in SHOWN]
        frames = [np.concatenate([np.where(a > 0, f, 0), a], axis=-1) for f, a in zip(frames, alpha)]
    return [frame.astype(np.uint8) for frame in frames]


def animated(path, frames, shown=SHOWN, loop=0, **options):
    images = [Image.fromarray(frame) for frame in frames]
    more = {"lossless": True} if path.suffix == ".webp" else {}
    more |= {"disposal": 2} if path.suffix == ".gif" and frames[0].shape[-1] == 4 else {}
    more |= {} if loop is None else {"loop": loop}
    file_format = FORMATS[path.suffix]
    images[0].save(path, file_format, save_all=True, append_images=images[1:], duration=shown, **more, **options)
    return path


def played(path):
    """The frames, RGBA, how long each is shown, and how often all are: 0 for ever."""
    frames, shown = [], []
    with Image.open(path) as image:
        for number in range(image.n_frames):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGBA")).astype(int))
            shown.append(image.info.get("duration", 0))
        loop = image.info.get("loop")
    for frame in frames:
        frame[frame[..., 3] == 0] = 0
    if path.suffix == ".gif":
        loop = 1 if loop is None else loop and loop + 1
    return frames, shown, loop


def assert_plays(path, frames, shown=SHOWN, plays=0):
    found, times, loop = played(path)
    assert (times, loop) == (shown, plays)
    for image, frame in zip(found, frames, strict=True):
        opaque = np.full_like(frame[..., :1], 255)
        np.testing.assert_array_equal(image, frame if frame.shape[-1] == 4 else np.concatenate([frame, opaque], -1))


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_all_frames_are_warped_to_all_formats_that_have_them(tmp_path, capsys, suffix, channels):
    """In few colors without a loss, so also to GIF; turned by a quarter."""
    frames = few_colors(channels)
    source = animated(tmp_path / f"in{suffix}", frames)
    assert_plays(source, frames)
    turn = ("rotate", source, "--angle", 90, "--expand", *POINT)
    for target in SUFFIXES:
        report = done(capsys, *turn, tmp_path / f"out{target}")
        assert f"in{suffix} 4 frames -> {tmp_path / f'out{target}'} 4 frames of 6x9: " in report
        assert_plays(tmp_path / f"out{target}", [np.rot90(frame) for frame in frames])
    assert done(capsys, "warp", source, tmp_path / "one.png", "--page", 3, *POINT).count(" frames of ") == 0
    one = load(tmp_path / "one.png")
    one = np.where(one[..., 3:] == 0, 0, one) if channels == 4 else one[..., :3]
    np.testing.assert_array_equal(one, frames[2])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_it_is_played_as_often(tmp_path, capsys, suffix):
    """A GIF states how often it is repeated, the others how often it is shown."""
    for loop in (None, 0, 2) if suffix == ".gif" else (0, 1, 3):
        source = animated(tmp_path / f"in{suffix}", few_colors(3), loop=loop)
        plays = played(source)[2]
        for target in SUFFIXES:
            done(capsys, "warp", source, tmp_path / f"out{target}", *POINT)
            assert_plays(tmp_path / f"out{target}", few_colors(3), plays=plays)


def test_frames_that_change_a_part_alone_are_composed(tmp_path, capsys):
    """By all ways of disposal, and by blending."""
    base = np.zeros((6, 9, 4), np.uint8)
    base[..., 0], base[..., 3] = 200, 255
    frames = [base.copy() for _ in range(3)]
    frames[1][1:3, 1:3], frames[2][4:, 5:] = (0, 99, 0, 255), (0, 0, 88, 255)
    for disposal in (0, 1, 2, 3):
        source = tmp_path / "in.gif"
        images = [Image.fromarray(frame).convert("RGB") for frame in frames]
        images[0].save(source, save_all=True, append_images=images[1:], duration=[100] * 3, disposal=disposal, loop=0)
        expected = played(source)[0]
        done(capsys, "warp", source, tmp_path / "out.gif", *POINT)
        assert_plays(tmp_path / "out.gif", expected, [100] * 3)
    parts = [frames[0], np.zeros_like(base), np.zeros_like(base)]
    parts[1][1:3, 1:3], parts[2][4:, 5:] = frames[1][1:3, 1:3], frames[2][4:, 5:]
    for disposal in (0, 1, 2):
        source = animated(tmp_path / "in.png", parts, [100.0] * 3, blend=1, disposal=disposal)
        expected = played(source)[0]
        done(capsys, "warp", source, tmp_path / "out.png", *POINT)
        assert_plays(tmp_path / "out.png", expected, [100.0] * 3)


def test_what_a_format_cannot_show_is_named(tmp_path, capsys):
    """Many colors, soft edges, short times, 16 bits, and a picture for those who see no animation."""
    many = [noise(4, height=40, width=40), 255 - noise(4, height=40, width=40)]
    source = animated(tmp_path / "in.webp", many, [33, 100])
    code, _, err = run(capsys, "warp", source, tmp_path / "out.gif", *POINT)
    assert code == 0
    assert err.splitlines() == [
        "jaxtex: note: in.webp has pixels in part transparent, which GIF shows as opaque or clear",
        "jaxtex: note: in.webp is reduced to 256 colors a frame, the most that GIF can store",
        "jaxtex: note: in.webp shows frames for times that GIF rounds to hundredths of a second",
    ]
    frames, shown, _ = played(tmp_path / "out.gif")
    assert shown == [30, 100]
    for found, frame in zip(frames, many):
        np.testing.assert_array_equal(found[..., 3], np.where(frame[..., 3] < 128, 0, 255))
        assert np.abs(found - frame)[frame[..., 3] >= 128][..., :3].mean() < 30
    images = [Image.fromarray(frame) for frame in few_colors(3)]
    source = tmp_path / "in.png"
    images[0].save(source, save_all=True, append_images=images[1:], duration=[40, 50, 60], loop=0, default_image=True)
    done(capsys, "warp", source, tmp_path / "out.png", *POINT)
    with Image.open(tmp_path / "out.png") as image:
        assert (image.n_frames, image.info["default_image"]) == (4, True)
        np.testing.assert_array_equal(np.asarray(image), few_colors(3)[0])
    code, _, err = run(capsys, "warp", source, tmp_path / "out.webp", *POINT)
    assert (code, err.count("has a still picture beside its frames, which is dropped")) == (0, 1)
    assert_plays(tmp_path / "out.webp", few_colors(3)[1:], [40, 50, 60])


def test_a_still_gif_is_a_picture_like_any_other(tmp_path, capsys):
    for channels in (3, 4):
        pixels = few_colors(channels)[0]
        Image.fromarray(pixels).save(tmp_path / "in.png")
        done(capsys, "warp", tmp_path / "in.png", tmp_path / "in.gif", *POINT)
        done(capsys, "warp", tmp_path / "in.gif", tmp_path / "out.gif", *POINT)
        done(capsys, "warp", tmp_path / "out.gif", tmp_path / "out.png", *POINT)
        np.testing.assert_array_equal(load(tmp_path / "out.png"), pixels)
    gray = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    assert fit_colors(gray) == (pytest.approx(np.repeat(gray, 3, -1)), ())


def test_previews_folders_pipes_and_broken_frames(tmp_path, capsys, monkeypatch):
    """A preview shows the first frame; a frame that cannot be read is an error, and no file."""
    (tmp_path / "in").mkdir()
    source = animated(tmp_path / "in" / "a.gif", few_colors(3))
    animated(tmp_path / "in" / "b.png", few_colors(4))
    code, _, err = run(capsys, "warp", source, tmp_path / "p.png", "--preview", *POINT)
    assert (code, err) == (0, "jaxtex: note: a.gif has 4 frames, of which the first is shown\n")
    done(capsys, "resize", tmp_path / "in", tmp_path / "out", "--size", "200%", *POINT, "--jobs", 1)
    assert_plays(tmp_path / "out" / "a.gif", [f.repeat(2, 0).repeat(2, 1) for f in few_colors(3)])
    assert_plays(tmp_path / "out" / "b.png", [f.repeat(2, 0).repeat(2, 1) for f in few_colors(4)])
    stdout = Stream()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", Stream(source.read_bytes()))
        patch.setattr(sys, "stdout", stdout)
        assert main(["warp", "-", "-", *map(str, POINT), "--format", "gif"]) == 0
    (tmp_path / "piped.gif").write_bytes(stdout.buffer.getvalue())
    assert_plays(tmp_path / "piped.gif", few_colors(3))
    capsys.readouterr()
    data = bytearray((tmp_path / "in" / "b.png").read_bytes())
    at = data.rindex(b"fdAT") + 8
    data[at : at + 20] = bytes(20)
    (tmp_path / "broken.png").write_bytes(data)
    before = sorted(tmp_path.iterdir())
    assert "broken.png (frame 4): it is broken" in refused(capsys, "warp", tmp_path / "broken.png", tmp_path / "x.png")
    assert sorted(tmp_path.iterdir()) == before


def test_an_animation_keeps_what_its_format_stores(tmp_path, capsys):
    """EXIF turns every frame; a GIF keeps its comment and XMP."""
    about = {"exif": b"Exif\0\0" + odd_files.exif(6), "icc_profile": odd_files.RGB_PROFILE}
    source = animated(tmp_path / "in.webp", few_colors(3), **about, xmp=odd_files.XMP % 6)
    for suffix in (".webp", ".png"):
        done(capsys, "warp", source, tmp_path / f"out{suffix}", *POINT)
        assert_plays(tmp_path / f"out{suffix}", [frame[::-1].swapaxes(0, 1) for frame in few_colors(3)])
        with Image.open(tmp_path / f"out{suffix}") as image:
            assert image.getexif().get_ifd(37500 and 34665)[37500] == odd_files.MAKER_NOTE
            assert image.info["icc_profile"] == odd_files.RGB_PROFILE
            assert image.info["xmp"] == odd_files.XMP % 1
    code, _, err = run(capsys, "warp", source, tmp_path / "out.gif", *POINT)
    assert (code, "is written as GIF without its EXIF and resolution\n" in err) == (0, True)
    source = animated(tmp_path / "in.gif", few_colors(3), comment=b"Noon")
    data, packet = source.read_bytes(), odd_files.XMP % 1
    trailer = bytes((1, *range(255, -1, -1), 0))
    source.write_bytes(data[:-1] + b"\x21\xff\x0bXMP DataXMP" + packet + trailer + data[-1:])
    done(capsys, "warp", source, tmp_path / "out.gif", *POINT)
    written = (tmp_path / "out.gif").read_bytes()
    assert packet in written
    assert b"Noon" in written
    assert_plays(tmp_path / "out.gif", few_colors(3))
    done(capsys, "warp", tmp_path / "out.gif", tmp_path / "again.gif", *POINT)
    assert (tmp_path / "again.gif").read_bytes() == written
