"""Perspectives, lenses, flows and smoothing of the command line, devices, and folders that stream."""

import _thread
import os
import signal
import threading
import types
import warnings

import jax
import numpy as np
import pytest
from PIL import Image

from jaxtex.cli import main, pipeline
from jaxtex.cli.files import codecs
from jaxtex.cli.files.metadata import Picture
from jaxtex.cli.options import Options, protect_negative_number
from jaxtex.cli.process import UserError
from tests.cli.odd_files import GRAY_PROFILE, HEIGHT, RGB_PROFILE, WIDTH, photograph
from tests.cli.test_cli import POINT, TAP_BY_TAP, bilinear_at, done, listing, load, noise, refused, run, save, warped
from tests.support.tolerances import assert_codes_close

CORNERS = np.array([(0.0, 0), (WIDTH, 0), (WIDTH, HEIGHT), (0, HEIGHT)])
# Where a camera might see them: no side parallel to another.
SEEN = np.array([(1.25, 0.5), (8.5, -0.75), (7.0, 5.5), (-0.5, 4.0)])


def pairs(starts, ends) -> list[str]:
    return [f"{x},{y}:{u},{v}" for (x, y), (u, v) in zip(np.array(starts).tolist(), np.array(ends).tolist())]


def eight_unknowns(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The homography from eight linear equations with a last element of 1, the other way to solve for one."""
    rows, right = [], []
    for (x, y), (u, v) in zip(starts, ends):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    return np.append(np.linalg.solve(rows, right), 1).reshape(3, 3)


def centers(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[:height, :width] + 0.5
    return x, y


def ramp(height: int, width: int, step: int) -> np.ndarray:
    """16 bits that tell where they stand: x and y of the center, times `step`, and a channel of zeros."""
    x, y = centers(height, width)
    return np.rint(np.stack([x, y, 0 * x], axis=-1) * step).astype(np.uint16)


def test_a_perspective_reads_where_its_inverse_points(tmp_path):
    pixels = noise(3)
    out = warped(tmp_path, pixels, "--perspective", *pairs(SEEN, CORNERS), *TAP_BY_TAP)
    back = eight_unknowns(CORNERS, SEEN)
    x, y = centers(HEIGHT, WIDTH)
    u, v, w = np.einsum("ij,jhw->ihw", back, np.stack([x, y, np.ones_like(x)]))
    expected = bilinear_at(pixels, u / w, v / w, 40)
    assert_codes_close("point", out, expected, 255 * WIDTH)


def test_nothing_shows_beyond_the_horizon(tmp_path):
    """The row at y of the output shows that at 3 + 1.5 / (y - 3): above 3, what lies behind the camera."""
    pixels = np.full((HEIGHT, WIDTH, 3), 200, np.uint8)
    points = ("3,4.5:3,4", "6,4.5:6,4", "5.25,3.75:6,5", "3.75,3.75:3,5")
    out = warped(tmp_path, pixels, "--perspective", *points, "--border-color", 7)
    assert (out[:3] == 7).all()
    assert (out[4:, 3:6] == 200).all()


def brown_conrady(x, y, camera, coefficients):
    """Where a lens shows the ideal point (x, y), in pixels, as OpenCV's documentation has it."""
    fx, fy, cx, cy = camera
    k1, k2, p1, p2, k3 = (*coefficients, *[0.0] * (5 - len(coefficients)))
    x, y = (x - cx) / fx, (y - cy) / fy
    r2 = x**2 + y**2
    radial = 1 + k1 * r2 + k2 * r2**2 + k3 * r2**3
    u = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x**2)
    v = y * radial + p1 * (r2 + 2 * y**2) + 2 * p2 * x * y
    return u * fx + cx, v * fy + cy


STEP = 1000
CAMERA = (50.0, 45.0, 20.5, 14.0)
STRONG = (-0.3, 0.1, 0.01, -0.02, 0.05)


def test_a_lens_is_taken_out_and_distortion_is_the_inverse(tmp_path):
    numbers = lambda values: ",".join(map(str, values))
    for coefficients, camera in ((STRONG, CAMERA), (STRONG[:1], CAMERA), (STRONG[:4], None)):
        options = ("--lens", numbers(coefficients), *(("--camera", numbers(camera)) if camera else ()))
        out = warped(tmp_path, ramp(30, 40, STEP), *options, "--address", "clamp")
        x, y = brown_conrady(*centers(30, 40), camera or (40.0, 40.0, 20.0, 15.0), coefficients)
        expected = np.stack([np.clip(x, 0.5, 39.5), np.clip(y, 0.5, 29.5)], axis=-1) * STEP
        assert_codes_close("point", out[..., :2], expected, STEP * 40)
    options = "--distort", numbers(STRONG), "--camera", numbers(CAMERA), "--address", "clamp"
    once = warped(tmp_path, ramp(30, 40, STEP), *options)
    there = brown_conrady(*(once[..., k] / STEP for k in (0, 1)), CAMERA, STRONG)
    error = np.abs(np.stack(there) - np.stack(centers(30, 40)))[:, 5:-5, 5:-5]
    assert error.max() <= 1.2 / STEP  # both were rounded to half a step


def save_flow(path, flow, **options):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, np.asarray(flow), **options)
    return path


def test_a_flow_is_added_to_the_output_pixel(tmp_path):
    pixels, (x, y) = noise(3), centers(HEIGHT, WIDTH)
    flow = np.random.default_rng(0).integers(-16, 17, (HEIGHT, WIDTH, 2)) / 4
    expected = bilinear_at(pixels, x + flow[..., 0], y + flow[..., 1], 40)
    for dtype in ("<f4", ">f8", "<f2"):
        path = save_flow(tmp_path / "flow.npy", np.asfortranarray(flow.astype(dtype)))
        assert_codes_close("peer", warped(tmp_path, pixels, "--flow", path, *TAP_BY_TAP), expected, 255)


def test_a_flow_gives_the_output_its_size_and_nan_shows_nothing(tmp_path):
    pixels = noise(3)
    flow = np.ones((2, 3, 2), np.float32)
    flow[1, 2, 0], flow[0, 0, 1] = np.nan, np.inf
    path = save_flow(tmp_path / "flow.npy", flow)
    out = warped(tmp_path, pixels, "--flow", path, "--size", "3x2", "--border-color", 40)
    expected = pixels[1:3, 1:4].copy()
    expected[1, 2] = expected[0, 0] = 40
    np.testing.assert_array_equal(out, expected)


@pytest.mark.slow
def test_what_shrinks_is_smoothed_in_every_transform(tmp_path):
    """Checkers become gray. Mirrored, they go on as checkers: there is no border in the way."""
    checkers = (np.indices((16, 24)).sum(0) % 2 * 255).astype(np.uint8)[..., None]
    x, y = centers(16, 24)
    flow = save_flow(tmp_path / "flow.npy", np.stack([2.1 * x - 20, 2.1 * y - 10], axis=-1))
    for transform in (
        ("--matrix", 0.3, 0, 5, 0, 0.9, 0.5),
        ("--perspective", "0,0:5,3", "24,0:12,4", "24,16:13,9", "0,16:4,8"),
        ("--lens", 2.5, "--camera", "12,12,12,8"),
        ("--flow", flow),
    ):
        smooth = warped(tmp_path, checkers, *transform, "--address", "mirror", "--antialias")
        smooth = smooth[:, :4] if "--lens" in transform else smooth  # in its middle nothing shrinks
        assert smooth.std() < 14.9  # a third of what it is without smoothing
        assert abs(smooth.mean() - 127.5) < 2


def test_smoothing_leaves_no_fringe_and_blends_the_border(tmp_path):
    pixels = np.zeros((16, 16, 4), np.uint8)
    pixels[:, :8] = (255, 0, 0, 255)
    pixels[:, 8:] = (0, 255, 0, 0)  # green, not to be seen
    out = warped(tmp_path, pixels, "--scale", 0.3, "--antialias", "--border-color", "1,2,3,4")
    np.testing.assert_array_equal(out[0, 0], (1, 2, 3, 4))
    assert out[out[..., 3] > 0][:, 1].max() <= 2  # that of the border
    assert ((out[..., 3] > 4) & (out[..., 3] < 255)).any()


def test_the_device_is_chosen_by_name_and_number(tmp_path, capsys, monkeypatch):
    used = []
    real = pipeline.warp
    monkeypatch.setattr(pipeline, "warp", lambda *a, **k: used.append(real(*a, **k)) or used[-1])
    source, number = save(tmp_path / "in.png", noise(4)), len(jax.devices("cpu")) - 1
    out = done(capsys, "warp", source, tmp_path / "out.png", "--device", f"cpu:{number}", "--rotate", 180, *POINT)
    assert used[0].tiles[0][1].devices() == {jax.devices("cpu")[number]}
    assert f"on {jax.devices('cpu')[number].device_kind}" in out
    np.testing.assert_array_equal(load(tmp_path / "out.png"), noise(4)[::-1, ::-1])


CONTINUE = "run it again with --skip-existing to warp only the images that are missing"
DEADLOCK = 120  # seconds, after which a thread that waits for another one gives up


def folder_of(tmp_path, count: int):
    folder = tmp_path / "in"
    folder.mkdir()
    for k in range(count):
        save(folder / f"{k:02}.png", np.full((4, 4, 3), k, np.uint8))
    return folder


def test_messages_come_in_the_order_of_names_whoever_is_first(tmp_path, capsys, monkeypatch):
    folder = folder_of(tmp_path, 12)
    broken = [f"{k:02}.png" for k in (1, 4, 5, 11)]
    read, was_read = codecs.read_picture, [threading.Event() for _ in range(12)]

    def overtaken(source, *rest):
        """Every fourth image is read only after the next one."""
        path = source.path
        if int(path.stem) % 4 == 0:
            assert was_read[int(path.stem) + 1].wait(DEADLOCK)
        was_read[int(path.stem)].set()
        if path.name in broken:
            raise UserError(f"cannot read {path}: it is broken")
        return read(source, *rest)

    monkeypatch.setattr(pipeline, "read_picture", overtaken)
    monkeypatch.setattr(pipeline, "THREADS", 4)
    code, out, err = run(capsys, "warp", folder, tmp_path / "out", *POINT)
    assert code == 2
    assert "8 warped, 4 failed" in out
    assert [line.rsplit("/", 1)[1].split(":")[0] for line in err.splitlines()] == broken
    for path in (tmp_path / "out").iterdir():
        assert (load(path) == int(path.stem)).all()
    assert len(listing(tmp_path / "out")) == 8


class WorstOrder:
    """A pool that reads as early and writes as late as it may, so that most images are in memory."""

    def __init__(self, threads):
        pass

    def submit(self, step, path, value):
        late = isinstance(value, pipeline.StartedWarp)
        result = None if late else step(path, value)
        return types.SimpleNamespace(result=lambda: step(path, value) if late else result)

    def shutdown(self, cancel_futures):
        pass


def counted(step, change, alive):
    """A step after which so many pictures more are in memory; `alive` has the numbers so far."""

    def call(*arguments):
        result = step(*arguments)
        alive.append(alive[-1] + change)
        return result

    return call


def test_few_images_are_in_memory_at_once(tmp_path, capsys, monkeypatch):
    alive = [0]
    monkeypatch.setattr(pipeline, "ThreadPoolExecutor", WorstOrder)
    monkeypatch.setattr(pipeline, "THREADS", 3)
    for name, change in (("read_picture", 1), ("finish_warp", -1)):
        monkeypatch.setattr(pipeline, name, counted(getattr(pipeline, name), change, alive))
    done(capsys, "warp", folder_of(tmp_path, 40), tmp_path / "out")
    assert alive[-1] == 0
    assert 4 < max(alive) <= 2 * (3 + pipeline.AHEAD) + 1


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_a_signal_ends_what_was_begun_and_leaves_whole_files(tmp_path, capsys, monkeypatch, number, word):
    folder = folder_of(tmp_path, 60)
    write = codecs.write_picture

    def interrupting(path, *rest):
        if int(path.stem) == 5:
            _thread.interrupt_main(number)  # as Ctrl-C does
        return write(path, *rest)

    monkeypatch.setattr(pipeline, "write_picture", interrupting)
    before = signal.signal(number, signal.default_int_handler)  # which a shell's background jobs ignore
    try:
        code, out, err = run(capsys, "warp", folder, tmp_path / "out", *POINT)
    finally:
        signal.signal(number, before)
    assert (code, out, err) == (128 + number, "", f"jaxtex: error: {word}; {CONTINUE}\n")
    written = listing(tmp_path / "out")
    assert "05.png" in written
    assert len(written) < 60
    for name in written:
        assert (load(tmp_path / "out" / name) == int(name[:2])).all()


def test_codecs_do_not_warn_from_their_threads(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 7)  # beyond it Pillow warns of a bomb, beyond 14 it refuses one
    before = [*warnings.filters]
    done(capsys, "warp", folder_of(tmp_path, 8), tmp_path / "out", *POINT)
    assert warnings.filters == before


def test_an_error_that_is_not_the_users_is_not_hidden(tmp_path, monkeypatch):
    folder = folder_of(tmp_path, 3)
    monkeypatch.setattr(pipeline, "write_picture", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["warp", str(folder), str(tmp_path / "out")])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_jpeg_is_read_and_written_as_by_pillow(tmp_path, channels):
    """Without its lock."""
    image, path = photograph(channels), tmp_path / "in.jpg"
    image = image.convert("CMYK") if channels == 4 else image
    for subsampling, progressive in ((0, False), (1, True), (2, False)):
        image.save(path, subsampling=subsampling, progressive=progressive, quality=80)
        with Image.open(path) as opened:
            expected = np.asarray(opened.convert("RGB") if channels == 4 else opened)
        pixels = codecs.read_picture(path).pixels
        np.testing.assert_array_equal(pixels, expected.reshape(pixels.shape))
    if channels < 4:
        image.save(path, quality=95, subsampling=0)
        profile = (GRAY_PROFILE if channels == 1 else RGB_PROFILE)[:20] + os.urandom(200_000)  # takes several segments
        pixels = np.asarray(image).reshape(image.height, image.width, -1)
        codecs.write_picture(tmp_path / "out.jpg", Picture(pixels, profile), Options())
        assert codecs.read_picture(tmp_path / "out.jpg").icc == profile
        np.testing.assert_array_equal(load(tmp_path / "out.jpg"), load(path))


def test_a_negative_number_is_a_value_and_not_an_option():
    for text in ("-1", "-.5", "-1e-3,2", "-1,-2:3,4"):
        assert protect_negative_number(text) == f" {text}"
    for text in ("--lens", "-h", "-1.png", "photo.png", "-inf"):
        assert protect_negative_number(text) == text


def test_a_hopeless_perspective_is_said_once_and_a_flow_once_an_image(tmp_path, capsys):
    folder, square = folder_of(tmp_path, 3), ("0,0:0,0", "9,0:9,0", "9,9:9,9", "18,0:0,9")
    refused(capsys, "warp", folder, tmp_path / "out", "--perspective", *square)
    assert not (tmp_path / "out").exists()
    path = save_flow(tmp_path / "flow.npy", np.zeros((HEIGHT, WIDTH, 2)))
    code, out, err = run(capsys, "warp", folder, tmp_path / "out", "--flow", path)
    assert (code, err.count("\n")) == (2, 3)
    assert "0 warped, 3 failed" in out
