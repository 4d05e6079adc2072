"""Calibrations in the files that OpenCV writes, and in those of others who use its names."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex import warp as jw
from jaxtex.cli.calibration import read_calibration, read_fields
from tests.cli.test_cli import noise, run, save, warped
from tests.support.tolerances import assert_close
from tests.unit.warp.test_warp_fisheye import recorded

HEIGHT, WIDTH = 24, 32


def calibration(tmp_path, name: str):
    path = tmp_path / f"camera.{name.rpartition('.')[2]}"
    path.write_bytes(bytes(recorded()[name]))
    return path


@pytest.mark.parametrize("suffix", ["yml", "json"])
@pytest.mark.parametrize("model", ["brown_conrady", "fisheye"])
def test_what_opencv_writes_is_read(tmp_path, model, suffix):
    lens = read_calibration(calibration(tmp_path, f"{model}.{suffix}"), "brown_conrady")
    theirs = recorded()["camera"]
    assert lens.camera == (theirs[0, 0], theirs[1, 1], theirs[0, 2] + 0.5, theirs[1, 2] + 0.5)
    expected = recorded()["fisheye0/coefficients"] if model == "fisheye" else [-0.25, 0.08, 0.004, -0.003, 0.01]
    assert lens.coefficients == tuple(expected)
    assert (lens.model, lens.size, str(lens)) == (model, (WIDTH, HEIGHT), f"lens distortion of camera.{suffix} removed")


@pytest.mark.parametrize("model", ["brown_conrady", "fisheye"])
def test_a_calibration_undistorts_as_the_library_does(tmp_path, model):
    pixels, path = noise(3, height=HEIGHT, width=WIDTH), calibration(tmp_path, f"{model}.yml")
    out = warped(tmp_path, pixels, "--calibration", path, "--address", "border")
    lens = read_calibration(path, "brown_conrady")
    camera, coefficients = jw.camera_from_opencv(np.float32(recorded()["camera"]), np.float32(lens.coefficients))
    expected = jw.undistort(jnp.asarray(pixels), camera, coefficients, model=model)
    assert_close("rounded code", out, expected, 2)


def test_a_camera_is_scaled_to_other_sizes(tmp_path):
    lens = read_calibration(calibration(tmp_path, "fisheye.yml"), "brown_conrady")
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


def test_fields_of_every_form(tmp_path):
    """OpenCV's directive and tags, anchors, flow mappings, and numbers that YAML takes for words."""
    (tmp_path / "camera.yml").write_text("""%YAML:1.0
---
# a comment
"quoted": 'a: b # no comment'
number: -1.5e3 # a comment
dotted: 3.
date: Mon Nov 23 01:02:03 2026
empty:
list: [ 1, [2., 3], "x" ]
dashed:
  - [1, 0]
  - 2.5
nested: { inner: { }, deeper: { value: 1 } }
anchored: &focal 30.0
again: *focal
matrix: !!opencv-matrix
   rows: 1
   cols: 2
   dt: d
   data: [ 1., 2. ]
nd: !!opencv-nd-matrix
   sizes: [1]
""")
    assert read_fields(tmp_path / "camera.yml") == {
        "quoted": "a: b # no comment",
        "number": "-1.5e3",
        "dotted": 3.0,
        "date": "Mon Nov 23 01:02:03 2026",
        "empty": None,
        "list": [1, [2.0, 3], "x"],
        "dashed": [[1, 0], 2.5],
        "nested": {"inner": {}, "deeper": {"value": 1}},
        "anchored": 30.0,
        "again": 30.0,
        "matrix": {"rows": 1, "cols": 2, "dt": "d", "data": [1.0, 2.0]},
        "nd": {"sizes": [1]},
    }


CAMERA = [[30.0, 0, 15.5], [0, 30.0, 11.5], [0, 0, 1]]
OTHERS = {
    "ROS": "image_width: 32\nimage_height: 24\ncamera_matrix:\n  rows: 3\n  cols: 3\n"
    "  data: [30, 0, 15.5, 0, 30, 11.5, 0, 0, 1]\ndistortion_model: equidistant\n"
    "distortion_coefficients:\n  rows: 1\n  cols: 4\n  data: [0.1, 0, 0, 0]\n",
    "lists": json.dumps({"K": CAMERA, "D": [[0.1], [0.0], [0.0], [0.0]], "fisheye": True}),
    "dashes": "K:\n- [30, 0, 15.5]\n- [0, 30, 11.5]\n- [0, 0, 1]\nD: [0.1, 0, 0, 0]\ncamera_model: fisheye\n",
    "flow maps and words": "cam: &k [30, 0, 15.5, 0, 3e1, 11.5, 0, 0, 1]\nK: {rows: 3, cols: 3, data: *k}\n"
    "D: [1e-1, 0, 0, 0]\nmodel: fisheye\n",
    "zeros behind": json.dumps({"K": CAMERA, "dist": [0.1] + [0] * 13, "model": "fisheye"}),
}


@pytest.mark.parametrize("writer", OTHERS)
def test_what_others_write_is_read(tmp_path, writer):
    path = tmp_path / "camera.txt"
    path.write_text(OTHERS[writer])
    lens = read_calibration(path, "brown_conrady")
    assert (lens.coefficients, lens.camera, lens.model) == ((0.1, 0, 0, 0), (30, 30, 16, 12), "fisheye")


def document(**fields) -> str:
    return json.dumps({"K": CAMERA, "D": [0, 0, 0, 0]} | fields)


BROKEN = {
    "no file": (None, "No such file"),
    "nothing": ("", "not YAML or JSON with fields"),
    "XML": ("<?xml version='1.0'?>", "it is XML; write it again"),
    "a sentence": ("These are words.", "not YAML or JSON with fields"),
    "half a list": ("K: [1, 2", "not YAML or JSON as OpenCV writes it"),
    "half of JSON": ('{"K": [', "not YAML or JSON"),
    "a bomb": (
        "a: &a [1, 1]\nb: &b [*a, *a]\nc: &c [*b, *b]\nK: [*c, *c]\nD: [0, 0, 0, 0]",
        "no numbers for the camera matrix",
    ),
    "code": ("K: !!python/object/apply:os.getcwd []", "not YAML or JSON"),
    "brackets": ("[" * 5000 + "]" * 5000, "not YAML or JSON"),
    "bytes": (b"\xff\xfe\x00", "not YAML or JSON"),
    "an indentation": ("a: 1\n  b: 2", "line 2, column 4"),
    "no camera": (
        json.dumps({"D": [0, 0, 0, 0]}),
        "no numbers for the camera matrix, in a field such as camera_matrix",
    ),
    "a small camera": (document(K=[1, 2]), "not 3 by 3"),
    "a camera of words": (document(K="x"), "no numbers for the camera matrix"),
    "a camera without length": (document(K=[[0, 0, 1], [0, 1, 1], [0, 0, 1]]), "focal lengths above 0"),
    "no lens": (json.dumps({"K": CAMERA}), "no numbers for the coefficients"),
    "three coefficients": (
        document(D=[0, 0, 0]),
        "3 coefficients, and a lens of the model brown_conrady has 4, 5 or 8",
    ),
    "a thin prism": (document(D=[0.1] * 12), "12 coefficients"),
    "NaN": (document(D=[float("nan")] * 4), "no numbers for the coefficients"),
    "a matrix too short": (document(K={"rows": 3, "cols": 3, "data": [1, 2]}), "has 2 elements"),
    "other proportions": (document(image_width=32, image_height=32), "other proportions"),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_file_that_is_no_calibration_is_one_sentence(tmp_path, capsys, mistake):
    content, fragment = BROKEN[mistake]
    path, source = tmp_path / "camera.yml", save(tmp_path / "in.png", noise(1))
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = run(capsys, "undistort", source, tmp_path / "out.png", "--calibration", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("jaxtex: error: ")
    assert fragment in err


def test_a_lens_of_eight_coefficients_keeps_them_all(tmp_path):
    path = tmp_path / "camera.json"
    path.write_text(document(D=[[0.5, -0.1, 0.003, -0.002, 0.01, 0.8, 0.1, 0.02]]))
    lens = read_calibration(path, "brown_conrady")
    assert len(lens.mapping((WIDTH, HEIGHT), (WIDTH, HEIGHT)).parameters) == 16
