"""Perspectives, lenses, flows and smoothing of the command line, devices, and folders that stream."""

import _thread
import io
import os
import signal
import threading
import types
import warnings

import jax
import numpy as np
import pytest
from PIL import Image

from jaxtex.cli import main, pipeline, recipe, transforms
from jaxtex.cli.files import decode, encode
from jaxtex.cli.files.exif import ORIENTATION
from jaxtex.cli.files.metadata import Picture
from jaxtex.cli.lenses import Lens
from jaxtex.cli.options import WHOLE_TRANSFORMS, Options
from jaxtex.cli.process import UserError
from jaxtex.cli.values import protect_negative_number
from jaxtex.warp.sized import image as sized_image
from jaxtex.warp.sized.mappings import MAX_ANISOTROPY
from tests.cli.test_cli import GRAY, HEIGHT, SRGB, TAP_BY_TAP, WIDTH, bilinear_at, load, noise, run, save, warped
from tests.support import peers
from tests.support.tolerances import assert_close, assert_codes_close

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


# Perspective


def test_four_points_go_where_they_are_sent():
    matrix = transforms.homography(("input", SEEN), ("output", CORNERS))
    expected = eight_unknowns(SEEN, CORNERS)
    assert_close("homography", matrix / matrix[2, 2], expected, np.maximum(1, np.abs(expected)))
    far = 1e4 + 3e3 * SEEN
    x, y, scale = transforms.homography(("input", far), ("output", 400 * CORNERS)) @ transforms.homogeneous(far).T
    assert_close("homography", np.stack([x / scale, y / scale], axis=-1), 400 * CORNERS, 400)


def test_the_matrix_is_that_of_opencv():
    matrix = transforms.homography(("input", SEEN), ("output", CORNERS))
    program = lambda cv2, starts, ends: [cv2.getPerspectiveTransform(starts, ends)]
    for (expected,) in peers.results("cv2", "homography", program, *np.float32([SEEN, CORNERS])):
        assert_close("homography", matrix / matrix[2, 2], expected, np.maximum(1, np.abs(expected)))


def test_a_perspective_reads_where_its_inverse_points(tmp_path):
    pixels = noise(3)
    out = warped(tmp_path, pixels, "--perspective", *pairs(SEEN, CORNERS), *TAP_BY_TAP)
    back = eight_unknowns(CORNERS, SEEN)
    x, y = centers(HEIGHT, WIDTH)
    u, v, w = np.einsum("ij,jhw->ihw", back, np.stack([x, y, np.ones_like(x)]))
    expected = bilinear_at(pixels, u / w, v / w, 40)
    assert_codes_close("point", out, expected, 255 * WIDTH)


@pytest.mark.parametrize(("dtype", "channels"), [("uint8", 3), ("uint16", 4)])
def test_points_that_stay_keep_every_bit(tmp_path, dtype, channels):
    pixels = noise(channels, dtype)
    out = warped(tmp_path, pixels, "--perspective", *pairs(CORNERS, CORNERS), "--filter", "point")
    np.testing.assert_array_equal(out, pixels)


def test_points_that_move_alike_are_a_translation(tmp_path):
    pixels = noise(3)
    out = warped(tmp_path, pixels, "--perspective", *pairs(CORNERS - 20, CORNERS - 18), "--filter", "point")
    np.testing.assert_array_equal(out, np.pad(pixels, ((2, 0), (2, 0), (0, 0)))[:HEIGHT, :WIDTH])


def test_nothing_shows_beyond_the_horizon(tmp_path):
    """The row at y of the output shows that at 3 + 1.5 / (y - 3): above 3, what lies behind the camera."""
    pixels = np.full((HEIGHT, WIDTH, 3), 200, np.uint8)
    points = ("3,4.5:3,4", "6,4.5:6,4", "5.25,3.75:6,5", "3.75,3.75:3,5")
    out = warped(tmp_path, pixels, "--perspective", *points, "--border-color", 7)
    assert (out[:3] == 7).all()
    assert (out[4:, 3:6] == 200).all()


# Lenses


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


@pytest.mark.parametrize(
    ("coefficients", "camera"), [(STRONG, CAMERA), (STRONG, None), (STRONG[:1], CAMERA), (STRONG[:4], None)]
)
def test_a_lens_is_taken_out(tmp_path, coefficients, camera):
    height, width = 30, 40
    options = ["--lens", ",".join(map(str, coefficients))]
    if camera:
        options += ["--camera", ",".join(map(str, camera))]
    out = warped(tmp_path, ramp(height, width, STEP), *options, "--address", "clamp")
    camera = camera or (40.0, 40.0, 20.0, 15.0)
    x, y = brown_conrady(*centers(height, width), camera, coefficients)
    expected = np.stack([np.clip(x, 0.5, width - 0.5), np.clip(y, 0.5, height - 0.5)], axis=-1) * STEP
    assert_codes_close("point", out[..., :2], expected, STEP * width)


def test_a_lens_without_distortion_changes_nothing(tmp_path):
    pixels = noise(3)
    np.testing.assert_array_equal(warped(tmp_path, pixels, "--lens", "0", "--filter", "point"), pixels)


def test_a_barrel_becomes_square(tmp_path):
    """With k1 = 0.5 the lens shows the ideal point at 1 from the axis at 1.5, here 2 pixels at 3."""
    pixels = np.zeros((7, 7, 1), np.uint8)
    pixels[3, 6] = 255
    out = warped(tmp_path, pixels, "--lens", "0.5", "--camera", "2,2,3.5,3.5", "--filter", "point")
    assert np.argwhere(out[..., 0]).tolist() == [[3, 5]]


def test_distortion_is_the_inverse(tmp_path):
    height, width = 30, 40
    options = ",".join(map(str, STRONG)), "--camera", ",".join(map(str, CAMERA)), "--address", "clamp"
    pixels = ramp(height, width, STEP)
    once = warped(tmp_path, pixels, "--distort", *options)
    x, y = brown_conrady(*(once[..., k] / STEP for k in (0, 1)), CAMERA, STRONG)
    there = np.stack([x, y], axis=-1)
    inside = np.s_[5:-5, 5:-5]
    error = np.abs(there - np.stack(centers(height, width), axis=-1))[inside]
    assert error.max() <= 1.2 / STEP  # both were rounded to half a step


def test_the_map_is_that_of_opencv():
    height, width = 30, 40
    mapping = Lens(STRONG, CAMERA).mapping((width, height), (width, height))
    pixels = (c.astype(np.float32) for c in centers(height, width))
    x, y = jax.jit(mapping.function)(*pixels, *mapping.parameters)
    fx, fy, cx, cy = CAMERA
    matrix = np.array([[fx, 0, cx - 0.5], [0, fy, cy - 0.5], [0, 0, 1]])

    def program(cv2, camera, lens):
        return cv2.initUndistortRectifyMap(camera, lens, None, camera, (width, height), cv2.CV_32FC1)

    for expected in peers.results("cv2", "map of a lens in the command line", program, matrix, np.array(STRONG)):
        assert_close("reordered", [x - 0.5, y - 0.5], expected, cx)


# Flows


def save_flow(path, flow, **options):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, np.asarray(flow), **options)
    return path


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2"])
def test_a_flow_is_added_to_the_output_pixel(tmp_path, dtype):
    random = np.random.default_rng(0)
    pixels, (x, y) = noise(3), centers(HEIGHT, WIDTH)
    flow = (random.integers(-16, 17, (HEIGHT, WIDTH, 2)) / 4).astype(dtype)
    path = save_flow(tmp_path / "flow.npy", np.asfortranarray(flow))
    out = warped(tmp_path, pixels, "--flow", path, *TAP_BY_TAP)
    expected = bilinear_at(pixels, x + flow[..., 0], y + flow[..., 1], 40)
    assert_codes_close("peer", out, expected, 255)


def test_a_flow_gives_the_output_its_size_and_nan_shows_nothing(tmp_path):
    pixels = noise(3)
    flow = np.ones((2, 3, 2), np.float32)
    flow[1, 2, 0], flow[0, 0, 1] = np.nan, np.inf
    path = save_flow(tmp_path / "flow.npy", flow)
    out = warped(tmp_path, pixels, "--flow", path, "--size", "3x2", "--border-color", 9)
    expected = pixels[1:3, 1:4].copy()
    expected[1, 2] = expected[0, 0] = 9
    np.testing.assert_array_equal(out, expected)


# Smoothing


def checkers(height: int, width: int) -> np.ndarray:
    return (np.add.outer(np.arange(height), np.arange(width)) % 2 * 255).astype(np.uint8)[..., None]


def shrinking_flow(tmp_path):
    x, y = centers(16, 24)
    return save_flow(tmp_path / "flow.npy", np.stack([3.1 * x - x - 20, 3.1 * y - y - 10], axis=-1))


# `test_cli_sizes` has a scale and a rotation, and compares every pixel.
SHRINKING = {
    "matrix": ("--matrix", "0.3", "0", "5", "0", "0.9", "0.5"),
    "perspective": ("--perspective", "0,0:5,3", "24,0:12,4", "24,16:13,9", "0,16:4,8"),
    "lens": ("--lens", "2.5", "--camera", "12,12,12,8"),
    "flow": ("--flow", "FLOW"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHRINKING)
def test_what_shrinks_is_smoothed_in_every_transform(tmp_path, kind):
    flow = shrinking_flow(tmp_path)
    options = [flow if value == "FLOW" else value for value in SHRINKING[kind]]
    # Mirrored, checkers go on as checkers: there is no border in the way. In the middle of a lens nothing shrinks.
    options += ["--address", "mirror"]
    where = np.s_[:, :4] if kind == "lens" else np.s_[:]
    plain = warped(tmp_path, checkers(16, 24), *options)[where].astype(float)
    smooth = warped(tmp_path, checkers(16, 24), *options, "--antialias")[where].astype(float)
    assert plain.std() > 40
    assert smooth.std() < plain.std() / 3
    assert abs(smooth.mean() - 127.5) < 2


def test_what_grows_is_as_without_smoothing(tmp_path):
    pixels = noise(3)
    options = ("--scale", 2.5, "--rotate", 20, "--address", "clamp")
    smooth, plain = (warped(tmp_path, pixels, *options, *more).astype(int) for more in (("--antialias",), ()))
    assert np.abs(smooth - plain).max() <= 1


def test_smoothing_leaves_no_fringe_and_blends_the_border(tmp_path):
    pixels = np.zeros((16, 16, 4), np.uint8)
    pixels[:, :8] = (255, 0, 0, 255)
    pixels[:, 8:] = (0, 255, 0, 0)  # green, not to be seen
    out = warped(tmp_path, pixels, "--scale", 0.3, "--antialias")
    seen = out[..., 3] > 0
    assert (seen & (out[..., 3] < 255)).any()
    np.testing.assert_array_equal(out[seen][:, :3], [(255, 0, 0)] * seen.sum())
    clear = warped(tmp_path, pixels, "--scale", 0.3, "--antialias", "--border-color", "1,2,3,4")
    np.testing.assert_array_equal(clear[0, 0], (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("linear", "reads"),
    [
        (transforms.rotation(33), 1),
        (transforms.rotation(33) * 7, 1),
        (np.diag([3.0, 2.9]), 2),
        (np.diag([1.0, 4.0]), 4),
        (np.diag([1.0, 4.1]), 8),
        (np.diag([1e-3, 1e3]), MAX_ANISOTROPY),
    ],
)
def test_as_many_reads_as_the_footprint_is_long(linear, reads):
    assert transforms.anisotropy(linear) == reads


# One program for each kind of transform


@pytest.mark.slow
def test_other_parameters_compile_nothing(tmp_path, capsys):
    source = save(tmp_path / "in.png", noise(3))
    variants = {
        "--perspective": (pairs(CORNERS, SEEN), pairs(SEEN, CORNERS)),
        "--lens": (["0.1"], ["-0.2,0.1,0.01", "--camera", "9,9,4,3"]),
        "--flow": ([save_flow(tmp_path / f"{k}.npy", np.full((HEIGHT, WIDTH, 2), k / 2))] for k in (0, 1)),
        "--rotate": (["10"], ["20", "--antialias"], ["30", "--antialias"]),
    }
    sized_image.compiled.cache_clear()
    for option, values in variants.items():
        for value in values:
            assert run(capsys, "warp", source, tmp_path / "out.png", option, *value)[0] == 0
    # With smoothing there is one more, which finds how far an image must be smoothed.
    assert sized_image.compiled.cache_info().misses == 6


# Devices


def test_the_device_is_chosen_by_name_and_number(tmp_path, capsys, monkeypatch):
    used = []
    real = pipeline.warp
    monkeypatch.setattr(pipeline, "warp", lambda *a, **k: used.append(real(*a, **k)) or used[-1])
    source, number = save(tmp_path / "in.png", noise(4)), len(jax.devices("cpu")) - 1
    code, out, err = run(capsys, "warp", source, tmp_path / "out.png", "--device", f"cpu:{number}", "--rotate", 180)
    assert (code, err) == (0, "")
    assert used[0].tiles[0][1].devices() == {jax.devices("cpu")[number]}
    assert f"on {jax.devices('cpu')[number].device_kind}" in out
    np.testing.assert_array_equal(load(tmp_path / "out.png"), noise(4)[::-1, ::-1])


# Folders


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
    read, was_read = decode.read_picture, [threading.Event() for _ in range(12)]

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
    monkeypatch.setattr(recipe, "THREADS", 4)
    code, out, err = run(capsys, "warp", folder, tmp_path / "out", "--filter", "point")
    assert code == 2
    assert "8 warped, 4 failed" in out
    assert [line.rsplit("/", 1)[1].split(":")[0] for line in err.splitlines()] == broken
    for path in (tmp_path / "out").iterdir():
        assert (load(path) == int(path.stem)).all()
    assert len(list((tmp_path / "out").iterdir())) == 8


class WorstOrder:
    """A pool that reads as early and writes as late as it may, so that most images are in memory."""

    def __init__(self, threads):
        pass

    def submit(self, step, path, value):
        if isinstance(value, pipeline.StartedWarp):
            return types.SimpleNamespace(result=lambda: step(path, value))
        result = step(path, value)
        return types.SimpleNamespace(result=lambda: result)

    def shutdown(self, cancel_futures):
        pass


def test_few_images_are_in_memory_at_once(tmp_path, capsys, monkeypatch):
    alive, most = [0], [0]

    def counted(step, change):
        def call(*arguments):
            result = step(*arguments)
            alive[0] += change
            most[0] = max(most[0], alive[0])
            return result

        return call

    monkeypatch.setattr(pipeline, "ThreadPoolExecutor", WorstOrder)
    monkeypatch.setattr(recipe, "THREADS", 3)
    monkeypatch.setattr(pipeline, "read_picture", counted(pipeline.read_picture, 1))
    monkeypatch.setattr(pipeline, "finish_warp", counted(pipeline.finish_warp, -1))
    assert run(capsys, "warp", folder_of(tmp_path, 40), tmp_path / "out")[0] == 0
    assert alive[0] == 0
    assert 4 < most[0] <= 2 * (3 + pipeline.AHEAD) + 1


def test_an_interrupt_ends_what_was_begun_and_leaves_whole_files(tmp_path, capsys, monkeypatch):
    folder = folder_of(tmp_path, 60)
    write = encode.write_picture

    def interrupting(path, *rest):
        if int(path.stem) == 5:
            _thread.interrupt_main()  # as Ctrl-C does
        return write(path, *rest)

    monkeypatch.setattr(pipeline, "write_picture", interrupting)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
    try:
        code, out, err = run(capsys, "warp", folder, tmp_path / "out", "--filter", "point")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, out, err) == (130, "", f"jaxtex: error: interrupted; {CONTINUE}\n")
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert "05.png" in written
    assert len(written) < 60
    for name in written:
        assert (load(tmp_path / "out" / name) == int(name[:2])).all()


def test_codecs_do_not_warn_from_their_threads(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 15)  # beyond it Pillow warns of a bomb
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        code, _, err = run(capsys, "warp", folder_of(tmp_path, 8), tmp_path / "out")
    assert (code, err, caught) == (0, "", [])
    assert warnings.filters == before


def test_an_error_that_is_not_the_users_is_not_hidden(tmp_path, monkeypatch):
    folder = folder_of(tmp_path, 3)
    monkeypatch.setattr(pipeline, "write_picture", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["warp", str(folder), str(tmp_path / "out")])


# JPEG without Pillow's lock


def photograph(channels: int, height: int = 37, width: int = 53) -> Image.Image:
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([128 + 60 * np.sin(x / (3 + c)) * np.cos(y / 5) + 40 * (x > y) for c in range(channels)], axis=-1)
    return Image.fromarray(pixels.astype(np.uint8)[..., 0] if channels == 1 else pixels.astype(np.uint8))


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_jpeg_pixels_are_those_of_pillow(tmp_path, channels, subsampling, progressive):
    image, path = photograph(channels), tmp_path / "in.jpg"
    if channels == 4:
        image = image.convert("CMYK")
    image.save(path, subsampling=subsampling, progressive=progressive, quality=80)
    with Image.open(path) as opened:
        expected = np.asarray(opened.convert("RGB") if channels == 4 else opened)
    pixels = decode.read_picture(path).pixels
    np.testing.assert_array_equal(pixels, expected.reshape(pixels.shape))


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_files_are_those_of_pillow(channels):
    image, buffer = photograph(channels), io.BytesIO()
    image.save(buffer, "JPEG", quality=95, subsampling=0)
    ours = encode.encode(
        encode.fit_picture(Picture(np.asarray(image).reshape(image.height, image.width, -1)), "JPEG"), "JPEG"
    )
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(ours))), np.asarray(Image.open(buffer)))


@pytest.mark.parametrize(("channels", "head"), [(1, GRAY), (3, SRGB)])
def test_a_long_profile_takes_several_segments(tmp_path, channels, head):
    pixels, profile = np.asarray(photograph(channels)), head[:20] + os.urandom(200_000)
    encode.write_picture(tmp_path / "out.jpg", Picture(pixels.reshape(37, 53, -1), profile), Options())
    assert decode.read_picture(tmp_path / "out.jpg").icc == profile
    with Image.open(tmp_path / "out.jpg") as image:
        assert np.abs(np.asarray(image).astype(int) - pixels).max() < 30


@pytest.mark.parametrize("cut", ["half", "the end", "all but a preview"])
def test_a_cut_jpeg_is_one_sentence(tmp_path, capsys, cut):
    path, preview, whole = tmp_path / "in.jpg", io.BytesIO(), io.BytesIO()
    photograph(3, 8, 8).save(preview, "JPEG")
    photograph(3).save(whole, "JPEG", exif=b"Exif\0\0" + preview.getvalue())
    data = whole.getvalue()
    path.write_bytes(data[: {"half": len(data) // 2, "the end": -2, "all but a preview": -len(data) // 3}[cut]])
    code, out, err = run(capsys, "warp", path, tmp_path / "out.png")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"jaxtex: error: cannot read {path}: ")


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_a_jpeg_is_turned_upright(tmp_path, orientation):
    image, exif = photograph(3), Image.Exif()
    exif[ORIENTATION] = orientation
    image.save(tmp_path / "in.jpg", exif=exif, quality=98, subsampling=0)
    turned = np.rot90(np.asarray(image), {1: 0, 3: 2, 6: -1, 8: 1}[orientation]).astype(int)
    assert np.abs(decode.read_picture(tmp_path / "in.jpg").pixels - turned).max() < 20


# Mistakes

FLOWS = {
    "empty.npy": b"",
    "text.npy": b"1 2 3",
    "cut.npy": None,
    "objects.npy": np.array([[[{}, {}]]]),
    "whole.npy": np.zeros((HEIGHT, WIDTH, 2), np.int32),
    "flat.npy": np.zeros((HEIGHT, WIDTH)),
    "three.npy": np.zeros((HEIGHT, WIDTH, 3)),
    "none.npy": np.zeros((0, WIDTH, 2)),
    "small.npy": np.zeros((HEIGHT - 1, WIDTH, 2)),
}
SQUARE = ["0,0:0,0", "9,0:9,0", "9,9:9,9", "0,9:0,9"]
MISTAKES = {
    "three pairs": (["--perspective", *SQUARE[:3]], "4 arguments"),
    "a point without its place": (["--perspective", *SQUARE[:3], "1,2"], "X,Y:X,Y"),
    "a point in space": (["--perspective", *SQUARE[:3], "1,2:1,2,3"], "X,Y:X,Y"),
    "a letter in a point": (["--perspective", *SQUARE[:3], "1,a:1,2"], "not a number"),
    "input points on a line": (["--perspective", *SQUARE[:3], "18,0:0,9"], "input points 0,0, 9,0, 18,0"),
    "output points on a line": (["--perspective", *SQUARE[:3], "0,9:18,0"], "output points 0,0, 9,0, 18,0"),
    "output points nearly on a line": (["--perspective", *SQUARE[:3], "0,9:18,1e-9"], "on one line"),
    "a point twice": (["--perspective", *SQUARE[:3], "9,0:0,9"], "on one line"),
    "points in another order": (["--perspective", "0,0:0,0", "9,0:9,9", "9,9:9,0", "0,9:0,9"], "horizon"),
    "six coefficients": (["--lens", "1,2,3,4,5,6"], "1 to 5"),
    "a coefficient of letters": (["--lens", "k1"], "not a number"),
    "a camera of three numbers": (["--lens", "0.1", "--camera", "9,9,4"], "four numbers"),
    "a camera without length": (["--lens", "0.1", "--camera", "9,0,4,3"], "above 0"),
    "a camera for nothing": (["--rotate", "1", "--camera", "9,9,4,3"], "--lens"),
    "a lens and its inverse": (["--lens", "0.1", "--distort", "0.1"], "--distort"),
    "a perspective and a turn": (["--perspective", *SQUARE, "--rotate", "1"], "--rotate"),
    "a flow and a matrix": (["--flow", "small.npy", "--matrix", *"100010"], "--matrix"),
    "no flow": (["--flow", "nowhere.npy"], "No such file"),
    "a flow that is a folder": (["--flow", "."], "Is a directory"),
    "an empty flow": (["--flow", "empty.npy"], "not a complete NumPy file"),
    "a flow of text": (["--flow", "text.npy"], "not a complete NumPy file"),
    "half a flow": (["--flow", "cut.npy"], "not a complete NumPy file"),
    "a flow of objects": (["--flow", "objects.npy"], "not a complete NumPy file"),
    "a flow of integers": (["--flow", "whole.npy"], "int32"),
    "a flow without vectors": (["--flow", "flat.npy"], "(height, width, 2)"),
    "a flow in space": (["--flow", "three.npy"], "(height, width, 2)"),
    "a flow of nothing": (["--flow", "none.npy"], "(height, width, 2)"),
    "a flow of another size": (["--flow", "small.npy"], "--size 9x5"),
    "smooth points": (["--antialias", "--filter", "point"], "--filter point"),
    "an unknown device": (["--device", "abacus"], "there is no device abacus:0; the devices are cpu:0"),
    "a device too many": (["--device", "cpu:999"], "there is no device cpu:999; the devices are cpu:0"),
    "a device of another name": (["--device", "gpu:one"], "NAME:N"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(tmp_path, capsys, monkeypatch, mistake):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "in.png", noise(3))
    arguments, fragment = MISTAKES[mistake]
    for name in {*arguments} & FLOWS.keys():
        content = FLOWS[name]
        if isinstance(content, np.ndarray):
            save_flow(tmp_path / name, content)
        else:
            save_flow(tmp_path / name, np.zeros((HEIGHT, WIDTH, 2)))
            whole = (tmp_path / name).read_bytes()
            (tmp_path / name).write_bytes(whole[: len(whole) // 2] if content is None else content)
    code, out, err = run(capsys, "warp", "in.png", "out.png", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("jaxtex: error: ")
    assert err.count("\n") == 1
    assert fragment in err
    assert not (tmp_path / "out.png").exists()


def test_every_whole_transform_is_made_somewhere():
    assert tuple(recipe.BUILDERS) == WHOLE_TRANSFORMS


def test_a_negative_number_is_a_value_and_not_an_option():
    for text in ("-1", "-.5", "-1e-3,2", "-1,-2:3,4"):
        assert protect_negative_number(text) == f" {text}"
    for text in ("--lens", "-h", "-1.png", "photo.png", "-inf"):
        assert protect_negative_number(text) == text


def test_a_hopeless_perspective_is_said_once_and_a_flow_once_an_image(tmp_path, capsys):
    folder = folder_of(tmp_path, 3)
    code, _, err = run(capsys, "warp", folder, tmp_path / "out", "--perspective", *SQUARE[:3], "18,0:0,9")
    assert (code, err.count("\n")) == (2, 1)
    assert not (tmp_path / "out").exists()
    path = save_flow(tmp_path / "flow.npy", np.zeros((HEIGHT, WIDTH, 2)))
    code, out, err = run(capsys, "warp", folder, tmp_path / "out", "--flow", path)
    assert (code, err.count("\n")) == (2, 3)
    assert "0 warped, 3 failed" in out
