"""Calibrations in the files that OpenCV writes, and in those of others who use its names."""

import dataclasses
import functools
import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from jaxtex import warp as jw
from jaxtex.cli.files.exif import ORIENTATION, apply_orientation, upright_size
from jaxtex.cli.lenses import read_calibration
from jaxtex.cli.process import UserError
from tests.cli.test_cli import load, noise, refused, run, save, warped
from tests.cli.test_cli_warps import brown_conrady
from tests.support.tolerances import assert_close
from tests.unit.warp.test_warp_lens import recorded

HEIGHT, WIDTH = 24, 32


def calibration(tmp_path, name: str):
    path = tmp_path / f"camera.{name.rpartition('.')[2]}"
    path.write_bytes(bytes(recorded()[name]))
    return path


def test_what_opencv_writes_is_read_and_undistorts_as_the_library_does(tmp_path):
    theirs, pixels = recorded()["camera"], noise(3, height=HEIGHT, width=WIDTH)
    fisheye = tuple(recorded()["fisheye0/coefficients"])
    for model, expected in (("brown_conrady", (-0.25, 0.08, 0.004, -0.003, 0.01)), ("fisheye", fisheye)):
        for suffix in ("yml", "json"):
            path = calibration(tmp_path, f"{model}.{suffix}")
            lens = read_calibration(path, "brown_conrady")
            assert lens.camera == (theirs[0, 0], theirs[1, 1], theirs[0, 2] + 0.5, theirs[1, 2] + 0.5)
            assert (lens.coefficients, lens.model, lens.size) == (expected, model, (WIDTH, HEIGHT))
            assert str(lens) == f"lens distortion of camera.{suffix} removed"
    out = warped(tmp_path, pixels, "--calibration", path, "--address", "border")
    camera, coefficients = jw.camera_from_opencv(np.float32(theirs), np.float32(expected))
    undistorted = jax.jit(functools.partial(jw.undistort, model=model))(jnp.asarray(pixels), camera, coefficients)
    assert_close("rounded code", out, undistorted, 2)
    # A camera is scaled to other sizes.
    assert lens.camera_of((2 * WIDTH, 2 * HEIGHT)) == tuple(2 * value for value in lens.camera)
    assert lens.camera_of((WIDTH // 2, HEIGHT // 2)) == tuple(value / 2 for value in lens.camera)


def test_a_fisheye_is_applied_and_taken_out(tmp_path):
    options = "0.1,-0.03", "--model", "fisheye", "--camera", "25,25,16,12", "--address", "clamp"
    x, y = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    smooth = np.rint(120 + 60 * np.sin(x / 6) * np.cos(y / 5)).astype(np.uint8)[..., None]
    there = warped(tmp_path, smooth, "--distort", *options, "--filter", "cubic")
    back = warped(tmp_path, there, "--lens", *options, "--filter", "cubic")
    assert np.abs(there.astype(int) - smooth).max() > 10
    assert np.abs(back.astype(int) - smooth)[3:-3, 3:-3].max() <= 3


CAMERA = [[30.0, 0, 15.5], [0, 30.0, 11.5], [0, 0, 1]]
# All are of one camera; some of them say the size of its images.
OTHERS = (
    # A message of ROS 2
    "header:\n  frame_id: left\nheight: 24\nwidth: 32\ndistortion_model: equidistant\nd:\n- 0.1\n- 0.0\n- 0.0\n- 0.0\n"
    "k: [30.0, 0.0, 15.5, 0.0, 30.0, 11.5, 0.0, 0.0, 1.0]\nr: [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]\n"
    "p: [30.0, 0.0, 15.5, 0.0, 0.0, 30.0, 11.5, 0.0, 0.0, 0.0, 1.0, 0.0]\nbinning_x: 0\n"
    "roi: {x_offset: 0, y_offset: 0, height: 0, width: 0, do_rectify: false}\n---\n",
    "image_width: 32\nimage_height: 24\ncamera_matrix:\n  rows: 3\n  cols: 3\n"
    "  data: [30, 0, 15.5, 0, 30, 11.5, 0, 0, 1]\ndistortion_model: equidistant\n"
    "distortion_coefficients:\n  rows: 1\n  cols: 4\n  data: [0.1, 0, 0, 0]\n",  # of ROS
    json.dumps({"K": CAMERA, "D": [[0.1], [0.0], [0.0], [0.0]], "fisheye": True}),
    json.dumps({"K": CAMERA, "dist": [0.1] + [0] * 13, "model": "fisheye"}),
    "K:\n- [30, 0, 15.5]\n- [0, 30, 11.5]\n- [0, 0, 1]\nD: [0.1, 0, 0, 0]\ncamera_model: fisheye\n",
    "cam: &k [30, 0, 15.5, 0, 3e1, 11.5, 0, 0, 1]\nK: {rows: 3, cols: 3, data: *k}\n"
    "D: [1e-1, 0, 0, 0]\nmodel: fisheye\n",
    # Quoted names, comments, nulls, and an array of OpenCV with other fields around it
    "\"quoted\": 'a: b # no comment'\nempty:\ndate: Mon Nov 23 01:02:03 2026\n"
    "K: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d # doubles\n"
    "   data: [ 30., 0., 15.5, 0., 30., 11.5, 0., 0., 1. ]\n"
    "nd: !!opencv-nd-matrix\n   sizes: [1]\nD: [1.0e-1, 0., 0., 0.]\nfisheye: 1\n",
    # Lists without commas
    "K: 30 0 15.5 0 30 11.5 0 0 1\nD: [0.1 0 0 0]\nmodel: fisheye\nwidth: 32\nheight: 24",
    "K: [30 0 15.5, 0 30 11.5, 0 0 1]\nD: [[0.1 0. 0. 0.]]\nfisheye: 1\nwidth: 32\nheight: 24",
    "K:\n- 3e1 0 15.5\n- 0 3e1 11.5\n- 0, 0, 1\nd: 1e-1, 0, 0, 0\nmodel: fisheye\nwidth: 32\nheight: 24",
)


def test_what_others_write_is_read(tmp_path):
    for text in OTHERS:
        lens = lens_of(tmp_path, text)
        assert (lens.coefficients, lens.camera, lens.model) == ((0.1, 0, 0, 0), (30, 30, 16, 12), "fisheye"), text
        assert (lens.size, lens.ideal) == ((WIDTH, HEIGHT) if "width: 32" in text else None, None)


def document(**fields) -> str:
    return json.dumps({"K": CAMERA, "D": [0, 0, 0, 0]} | fields)


def lens_of(tmp_path, text, model="brown_conrady"):
    (tmp_path / "camera.yml").write_text(text)
    return read_calibration(tmp_path / "camera.yml", model)


FISHEYE_WORDS = ("fisheye", "equidistant", "OPENCV_FISHEYE", "KannalaBrandt8", "Kannala-Brandt", "kannala_brandt4")
BROWN_WORDS = ("plumb_bob", "rational_polynomial", "OPENCV", "FULL_OPENCV", "radtan", "Brown-Conrady", "", None)
UNKNOWN_WORDS = ("double_sphere", "mei", "omni", "scaramuzza", "simple_radial", "fov", "none", "nonsense", 7)


def test_a_word_for_a_lens_model_is_understood_or_an_error(tmp_path):
    fields = itertools.cycle(("distortion_model", "lens_model", "Camera_Model"))
    for words, model in ((FISHEYE_WORDS, "fisheye"), (BROWN_WORDS, "brown_conrady")):
        assert {lens_of(tmp_path, document(**{field: word})).model for word, field in zip(words, fields)} == {model}
    for word, field in zip(UNKNOWN_WORDS, fields):
        with pytest.raises(UserError, match=r"camera.yml: its field .* the lens model .*plumb_bob.*equidistant"):
            lens_of(tmp_path, document(**{field: word}))


def test_words_that_contradict_each_other_are_an_error(tmp_path):
    assert lens_of(tmp_path, document(camera_model="pinhole", distortion_model="equidistant")).model == "fisheye"
    assert lens_of(tmp_path, document(xi=0.0), "fisheye").model == "fisheye"
    assert lens_of(tmp_path, document(type="fisheye", camera_name="left")).model == "fisheye"
    assert lens_of(tmp_path, document(camera_name="fisheye")).model == "brown_conrady"
    for fields, model in (
        ({"distortion_model": "plumb_bob", "camera_model": "fisheye"}, "brown_conrady"),
        ({"distortion_model": "plumb_bob", "fisheye_model": 1}, "brown_conrady"),
        ({"distortion_model": "plumb_bob"}, "fisheye"),
    ):
        with pytest.raises(UserError, match="name two lens models; leave one out"):
            lens_of(tmp_path, document(**fields), model)
    with pytest.raises(UserError, match="xi stands for the lens model 'mei'"):
        lens_of(tmp_path, document(xi=[1.2]))


def field_of(lens, source=(WIDTH, HEIGHT), scale=1):
    """Where the pixels of the result are read, (height, width, 2), as OpenCV counts pixels.

    Args:
        scale: factor of width and height of the image, whose points are those of the pixels of `source`.
    """
    size = (scale * source[0], scale * source[1])
    mapping = lens.mapping(size, size)
    x, y = np.meshgrid(*(scale * (np.arange(n, dtype=np.float32) + 0.5) for n in source))
    return np.stack(evaluated(mapping.function, x, y, *mapping.parameters), -1) / scale - 0.5


@functools.partial(jax.jit, static_argnums=0)
def evaluated(function, *args):
    return function(*args)


def magnitude(field):
    """How much farther than a width away a lens reads, where its polynomial is steep."""
    return np.maximum(1, np.abs(field).max(-1, keepdims=True) / WIDTH)


STEREO = {"ROS": ("rectification_matrix", "projection_matrix"), "ROS 2": ("r", "p"), "stereo_calib": ("R1", "P1")}
FORMS = {"lists": np.ndarray.tolist, "ROS": lambda m: {"rows": len(m), "cols": m.shape[1], "data": m.ravel().tolist()}}


def stereo_document(model, rotation="R", projection="P", form=np.ndarray.tolist):
    data, moved = recorded(), np.array([[-3.5], [0], [0]])  # by the distance of the cameras
    fields = {
        "camera_matrix": data["camera"],
        rotation: data["rectified/turn"],
        projection: np.hstack([data["new_camera"], moved]),
        "dist_coeffs": data["fisheye0/coefficients"][None],
    }
    if model != "fisheye":
        fields["dist_coeffs"] = np.array([[-0.25, 0.08, 0.004, -0.003, 0.01]])
    if model == "plain":
        del fields[rotation]
    return {name: form(value) for name, value in fields.items()} | {"fisheye": model == "fisheye"}


def test_a_rectification_is_that_of_opencv_in_every_form_and_size(tmp_path):
    for model in ("brown_conrady", "fisheye", "plain"):
        lens = lens_of(tmp_path, json.dumps(stereo_document(model)))
        assert str(lens) == "lens distortion of camera.yml removed, rectified"
        expected = recorded()[f"rectified/{model}"]
        assert_close("point", field_of(lens), expected, WIDTH * magnitude(expected))
    sized = stereo_document("brown_conrady") | {"image_width": WIDTH, "image_height": HEIGHT}
    lens = lens_of(tmp_path, json.dumps(sized))
    expected = field_of(lens)
    assert_close("point", field_of(lens, scale=2), expected, WIDTH * magnitude(expected))
    lenses = [
        lens_of(tmp_path, json.dumps(stereo_document("fisheye", *names, form)))
        for names in STEREO.values()
        for form in FORMS.values()
    ]
    assert len({lens.ideal for lens in lenses}) == 1
    assert lenses[0].ideal is not None


def test_what_rectifies_nothing_is_left_out(tmp_path):
    """A monocular camera, one of ROS that is not calibrated, and the rotation to another camera."""
    unit, turn = np.eye(3).tolist(), recorded()["rectified/turn"].tolist()
    plain = lens_of(tmp_path, document())
    for fields in (
        {"R": unit, "P": np.hstack([CAMERA, np.zeros((3, 1))]).tolist()},
        {"r": [0] * 9, "p": [0] * 12},
        {"R": turn, "T": [1, 0, 0]},
    ):
        assert lens_of(tmp_path, document(**fields)) == plain
    assert (plain.ideal, str(plain)) == (None, "lens distortion of camera.yml removed")


def test_a_skew_counts(tmp_path):
    """The lens shows a ray (x, y) farther to the right, by the skew times y, and so does the result."""
    skewed = [[30.0, 2.0, 15.5], [0, 28.0, 11.5], [0, 0, 1]]
    lens = lens_of(tmp_path, document(K=skewed, D=[-0.2, 0.05, 0.01, -0.02]))
    v, u = np.mgrid[:HEIGHT, :WIDTH].astype(float)
    y = (v - 11.5) / 28
    x = (u - 15.5 - 2 * y) / 30
    x, y = brown_conrady(x, y, (1, 1, 0, 0), (-0.2, 0.05, 0.01, -0.02))
    assert_close("point", field_of(lens), np.stack([30 * x + 2 * y + 15.5, 28 * y + 11.5], -1), WIDTH)


def test_behind_the_camera_nothing_shows(tmp_path):
    """Turned by 100 degrees, the axis of the result points away from what the lens shows."""
    cosine, sine = np.cos(np.radians(100)), np.sin(np.radians(100))
    turn = [[cosine, 0, -sine], [0, 1, 0], [sine, 0, cosine]]
    for model in ("brown_conrady", "fisheye"):
        field = field_of(lens_of(tmp_path, document(K=[[9, 0, 15.5], [0, 9, 11.5], [0, 0, 1]], R=turn), model))
        x, y = (np.arange(WIDTH) - 15.5) / 9, (np.arange(HEIGHT) - 11.5) / 9
        depth = np.array(turn).T[2] @ np.stack([*np.meshgrid(x, y), np.ones((HEIGHT, WIDTH))]).reshape(3, -1)
        assert not np.isnan(field).any()
        np.testing.assert_array_equal(np.isinf(field[..., 0]).ravel(), depth <= 0)


LOPSIDED = {"K": [[30.0, 0, 13.5], [0, 27.0, 12.5], [0, 0, 1]], "D": [-0.25, 0.08, 0.03, -0.02]}
OF_SIZE = {"image_width": WIDTH, "image_height": HEIGHT}


def test_a_calibration_turns_with_the_picture(tmp_path):
    """What is read for an upright pixel is what the stored picture has there."""
    rectified = LOPSIDED | OF_SIZE | {"R": recorded()["rectified/turn"].tolist()}
    places = np.stack(np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT)), -1)
    for fields, orientations in ((LOPSIDED, (3, 5)), (LOPSIDED | OF_SIZE, (2, 4, 7)), (rectified, range(1, 9))):
        lens = lens_of(tmp_path, json.dumps(fields))
        stored = field_of(lens)
        for orientation in orientations:
            upright = field_of(lens.upright(orientation), upright_size((WIDTH, HEIGHT), orientation))
            # The stored place of a point of the upright picture: that of its first pixel, and the steps to the next.
            turned = apply_orientation(places, orientation)
            steps = np.stack([turned[0, 1] - turned[0, 0], turned[1, 0] - turned[0, 0]])
            assert_close("point", upright @ steps + turned[0, 0], apply_orientation(stored, orientation), WIDTH)


def test_a_calibration_of_upright_pictures_is_not_turned(tmp_path):
    """OpenCV turns pictures as it reads them."""
    lens = lens_of(tmp_path, json.dumps(LOPSIDED | {"image_width": HEIGHT, "image_height": WIDTH}))
    np.testing.assert_array_equal(field_of(lens.upright(6), (HEIGHT, WIDTH)), field_of(lens, (HEIGHT, WIDTH)))
    with pytest.raises(UserError, match="24x32, and this one of 32x24 is turned by a quarter, without an EXIF"):
        lens.mapping((WIDTH, HEIGHT), (WIDTH, HEIGHT))
    with pytest.raises(UserError, match="24x32, and this one of 32x23 has other proportions; crop both alike"):
        lens.mapping((WIDTH, HEIGHT - 1), (WIDTH, HEIGHT - 1))


def test_pixels_that_were_turned_take_the_calibration_of_the_camera(tmp_path, capsys):
    """As if the orientation still said so. Where neither it nor --turned does, a lens must be the same on all sides."""
    tall, fields = (HEIGHT, WIDTH), {"left": 8, "right": 6}
    far = LOPSIDED | {"K": [[30.0, 0, 21.0], [0, 27.0, 12.5], [0, 0, 1]]}  # of no size: by its principal point
    wide = (40, 24)
    for given, size in ((LOPSIDED | OF_SIZE, (WIDTH, HEIGHT)), (far, wide)):
        lens = lens_of(tmp_path, json.dumps(given))
        for turned, orientation in fields.items():
            found = field_of(dataclasses.replace(lens, turned=turned), size[::-1])
            np.testing.assert_array_equal(found, field_of(lens.upright(orientation), size[::-1]))
            # What is not turned stays as it is.
            np.testing.assert_array_equal(
                field_of(dataclasses.replace(lens, turned=turned), size), field_of(lens, size)
            )
        with pytest.raises(UserError, match="is turned by a quarter, without an EXIF orientation that says which way"):
            field_of(lens, size[::-1])
    middle = {"K": [[30.0, 0, 15.5], [0, 27.0, 11.5], [0, 0, 1]], "D": [-0.25, 0.08, 0, 0]} | OF_SIZE
    even = lens_of(tmp_path, json.dumps(middle))
    np.testing.assert_array_equal(field_of(even, tall), field_of(even.upright(6), tall))
    assert_close("point", field_of(even, tall), field_of(even.upright(8), tall), WIDTH)
    for change in ({"D": [-0.25, 0.08, 0.01, 0]}, {"K": [[30.0, 0, 15.6], [0, 27.0, 11.5], [0, 0, 1]]}):
        with pytest.raises(UserError, match="--turned right if it was turned clockwise, or --turned left"):
            field_of(lens_of(tmp_path, json.dumps(middle | change)), tall)
    # Through files: a picture whose pixels are turned is the turned result.
    path, pixels = tmp_path / "camera.json", noise(3, height=HEIGHT, width=WIDTH)
    path.write_text(json.dumps(LOPSIDED | OF_SIZE))
    save(tmp_path / "wide.png", pixels)
    save(tmp_path / "tall.png", np.rot90(pixels))
    options = "--calibration", path, "--address", "clamp"
    assert "--turned" in refused(capsys, "warp", tmp_path / "tall.png", tmp_path / "out.png", *options)
    assert run(capsys, "warp", tmp_path / "tall.png", tmp_path / "out.png", *options, "--turned", "left")[0] == 0
    assert run(capsys, "warp", tmp_path / "wide.png", tmp_path / "straight.png", *options)[0] == 0
    assert_close("rounded code", load(tmp_path / "out.png"), np.rot90(load(tmp_path / "straight.png")), 2)


def test_a_portrait_shot_takes_the_calibration_of_the_camera(tmp_path, capsys):
    """The upright result is the result, upright; also from a file that fits no memory."""
    path = tmp_path / "camera.json"
    path.write_text(json.dumps(LOPSIDED | OF_SIZE))
    pixels, exif = noise(3, height=HEIGHT, width=WIDTH), Image.Exif()
    exif[ORIENTATION] = 6
    save(tmp_path / "landscape.tif", pixels)
    save(tmp_path / "portrait.tif", pixels, exif=exif)
    found = {}
    for name, *more in (("landscape",), ("portrait",), ("portrait", "--tile")):
        source, out = tmp_path / f"{name}.tif", tmp_path / f"{name}{len(more)}.tif"
        assert run(capsys, "warp", source, out, "--calibration", path, "--address", "clamp", *more)[0] == 0
        found[name, *more] = load(out)
    assert_close("rounded code", found["portrait",], np.rot90(found["landscape",], -1), 2)
    np.testing.assert_array_equal(found["portrait", "--tile"], found["portrait",])


def test_of_two_cameras_the_first_is_used_and_named(tmp_path):
    both = {"M1": CAMERA, "D1": [0.1, 0, 0, 0], "M2": np.eye(3).tolist(), "D2": [0, 0, 0, 0]}
    with pytest.warns(UserWarning, match="camera.yml has two cameras, of which the first is used"):
        assert lens_of(tmp_path, json.dumps(both)).coefficients == (0.1, 0, 0, 0)


TWICE = "a: &a [1, 1]\nb: &b [*a, *a]\nc: &c [*b, *b]\nK: [*c, *c]\nD: [0, 0, 0, 0]"
UPRIGHT = [0, 0, 0, 1, 0, 0, 0, 1]
# What a file holds, and a part of the sentence.
BROKEN = [
    (None, "No such file"),
    ("", "not YAML or JSON with fields"),
    ("<?xml version='1.0'?>", "it is XML; write it again"),
    ("K: [1, 2", "not YAML or JSON as OpenCV writes it"),
    (TWICE, "no numbers for the camera matrix"),
    ("K: !!python/object/apply:os.getcwd []", "not YAML or JSON"),
    ("[" * 5000 + "]" * 5000, "not YAML or JSON"),
    (b"\xff\xfe\x00", "not YAML or JSON"),
    ("a: 1\n  b: 2", "line 2, column 4"),
    ('{"D": [0, 0, 0, 0]}', "no numbers for the camera matrix, in a field such as camera_matrix"),
    (document(K=[1, 2]), "not 3 by 3"),
    (document(K="x"), "no numbers for the camera matrix"),
    (document(K=[[0, 0, 1], [0, 1, 1], [0, 0, 1]]), "focal lengths above 0"),
    (document(K=np.array(CAMERA).T.tolist()), "is it transposed?"),
    (document(K={"rows": 3, "cols": 3, "data": [1, 2]}), "has 2 elements"),
    (json.dumps({"K": CAMERA}), "no numbers for the coefficients"),
    (document(D=[float("nan")] * 4), "no numbers for the coefficients"),
    (document(D=[0, 0, 0]), "3 coefficients, and a lens of the model brown_conrady has 4, 5 or 8"),
    (document(D=[0] * 12 + [0.1] * 2), "calibrate again without CALIB_THIN_PRISM_MODEL and"),
    (document(D=[0.1] * 5, fisheye=1), "5 coefficients, and a lens of the model fisheye has 4; is"),
    (document(R=[2, *UPRIGHT]), "rectification matrix is no rotation"),
    (document(R=[-1, *UPRIGHT]), "rectification matrix is no rotation"),
    (document(R=[1, 0]), "the rectification matrix has 2 elements, and is not 3 by 3"),
    (document(P=[1, 0]), "has 2 elements, and is not 3 by 3 or 3 by 4"),
    (document(P=[0, 0, 1, 0, 1, 1, 0, 0, 1]), "its projection matrix is not"),
    (document(image_width="32", image_height=24), "32 by 24, is not two whole numbers"),
    (document(image_width=32), "32 by 0, is not two whole numbers"),
    (document(image_width=32, image_height=32), "other proportions"),
    (document(roi={"x_offset": 4}), "its roi is a part of the images"),
    (document(width=64, height=48, roi={"width": 32, "height": 48}), "its roi is a part of the images"),
    ("K: 1\n---\nK: 2", "it holds 2 documents; leave one"),
]


def test_a_file_that_is_no_calibration_is_one_sentence(tmp_path, capsys):
    path, source = tmp_path / "camera.yml", save(tmp_path / "in.png", noise(1))
    for content, fragment in BROKEN:
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert fragment in refused(capsys, "undistort", source, tmp_path / "out.png", "--calibration", path), content


def test_a_lens_of_eight_coefficients_keeps_them_all(tmp_path):
    path = tmp_path / "camera.json"
    path.write_text(document(D=[[0.5, -0.1, 0.003, -0.002, 0.01, 0.8, 0.1, 0.02]]))
    lens = read_calibration(path, "brown_conrady")
    assert len(lens.mapping((WIDTH, HEIGHT), (WIDTH, HEIGHT)).parameters) == 16
