"""Mistakes on a command line: each is one sentence and exit code 2, and nothing is written."""

import os
import shlex

import numpy as np
import pytest
import tifffile

from jaxtex.cli.files import codecs
from tests.cli.odd_files import several
from tests.cli.test_cli import HEIGHT, WIDTH, noise, refused, save

SQUARE = "0,0:0,0 9,0:9,0 9,9:9,9 0,9:0,9"
THREE = SQUARE.rsplit(" ", 1)[0]
# What comes after `jaxtex`, and a part of the sentence.
MISTAKES = {
    # Commands and options
    "wrap": "there is no command 'wrap'; the commands are resize, rotate, undistort, warp",
    "warpp": "warp, info, completion; did you mean warp?",
    "RESIZE in.png out.png": "; did you mean resize?",
    "--verison": "unrecognized arguments: --verison; did you mean --version?",
    "completion tcsh": "argument SHELL: 'tcsh' is not one of bash, zsh, fish\n",
    "warp in.png out.png --spin": "--spin",
    "warp in.png": "OUT",
    "rotate in.png out.png": "--angle",
    "rotate in.png out.png --angel 5": "--angel; did you mean --angle?",
    "rotate in.png -rotate 5 out.png": "-rotate; did you mean --rotate?",
    "warp in.png out.png --lense=0.1": "--lense=0.1; did you mean --lens?",
    "rotate in.png out.png --angle 5 --height 5": "--size WxH sets both",
    "rotate in.png out.png --angle 9 --expand --crop": "--expand and --crop",
    "resize in.png out.png": "one of --size, --scale and --fit, but got none",
    "resize in.png out.png --size 4x4 --fit 3x3": "--size and --fit",
    "resize in.png out.png --width=5": "--size WxH sets both sides, --fit WxH keeps",
    "resize in.png out.png --scale 50%": "'50%' is not a number; write 0.5",
    "resize in.png out.png --fit 100": "such as 100x100",
    "resize in.png out.png --scale 2 --enlarge": "--enlarge has no effect without --fit",
    "resize in.png out.png --scale .5 --filter area --no-antialias": "--filter area averages",
    "undistort in.png out.png": "one of --lens, --distort and --calibration, but got none",
    "undistort in.png out.png --lens 1,2,3,4,5 --model fisheye": "at most four",
    "warp in.png out.png --model fisheye": "--model has no effect",
    "warp in.png out.png --lens .1 --turned left": "--turned has no effect without --calibration",
    "warp in.png out.png --lens .1 --expand": "--expand has no effect with --lens",
    "warp in.png out.png --alpha --address clamp": "--alpha has no effect",
    "warp in.png out.png --quiet --verbose": "exclude each other",
    "warp in.png out.png --antialias --filter point": "--filter point",
    "warp in.png out.png --filter lanczos": "argument --filter: 'lanczos' is not one of point, linear, cubic, ",
    "resize in.png out.png --scale 2 --filter lancsoz3": "gaussian, area; did you mean lanczos3?",
    "warp in.png out.png --address mirorr": "; did you mean mirror?",
    "warp in.png folder --format JPG": "argument --format: 'JPG' is not one of png, jpg, jpeg,",
    "warp in.png folder --format tff": "; did you mean tiff?",
    "warp in.png out.png --filter box": "gaussian\n",
    "warp in.png out.png --address sphere": "--address sphere needs an even width, and the image is 9 pixels wide",
    "warp in.png out.jpg --quality 0": "1 to 100",
    "warp in.png out.png --quality 50": "--quality has no effect on PNG",
    "warp in.png out.png --compression lzw": "--compression lzw has no effect on PNG, which takes 0, 1, 2, 3",
    "warp in.png out.jpg --compression 9": "--compression 9 has no effect on JPEG, which takes --quality and --sub",
    "warp in.png out.tif --compression lossy": "no effect on TIFF, which takes none, packbits, lzw, deflate, zstd",
    "warp in.png out.webp --compression losless": "; did you mean lossless?",
    "warp in.png out.webp --compression lossless --quality 9": "cannot be combined with --compression lossless",
    "warp in.png out.webp --subsampling 420": "--subsampling has no effect on WebP",
    "warp in.png out.jpg --jobs 0": "above 0",
    "warp in.png out.png --device abacus": "there is no device abacus:0; the devices are cpu:0",
    "warp in.png out.png --device cup": "; did you mean cpu:0?",
    "warp in.png out.png --device cpu:999": "there is no device cpu:999; the devices are cpu:0",
    "warp in.png out.png --device gpu:one": "NAME:N",
    # Inputs and outputs
    "warp nowhere.png out.png": "No such file",
    "warp text.png out.png": "not an image",
    "warp empty.tif out.png": "not an image",
    "warp float.tif out.png": "its pixels are MINISBLACK of float32, and jaxtex reads gray",
    "warp whole.tif out.png": "its pixels are RGB of uint32",
    "warp float.tif out.tif --tile": "its pixels are MINISBLACK of float32, and --tile reads gray and RGB of 8 and 16",
    "warp in.png out.bmp": "'.bmp'",
    "warp in.png out.jpge": "; did you mean .jpg or .jpeg?",
    "warp in.png out": "no suffix",
    "warp in.png out.png --format jpg": "--format jpg contradicts",
    "warp folder in.png": "name a folder",
    "warp folder folder/../folder": "is also an input, which it would replace",
    "warp bare made": "no image file",
    "warp '' out.png": "argument IN: the name of a file is empty",
    "warp in.png ''": "argument OUT: the name of a file is empty",
    "warp in.png gray.png out.png": "name a folder",
    "warp in.png gray.png -": "standard output, and there are several",
    "warp - gray.png out": "must be the only input",
    "warp in.png folder/in.png out": "would both be written to out/in.png; write",
    "warp in.png gray.png out --name x{suffix}": "in.png and gray.png would both be written to out/x.png; add {number}",
    "warp in.png gray.png out --name {width:3}{suffix}": "would both be written to out/  9.png; add {number} to --name",
    "warp in.png out.png --name {stem}.png": "--name is for files in a folder, and out.png is none",
    "warp in.png folder --name {setm}.png": "'{setm}' is no field; the fields are {stem}, {suffix}, {number}, {width},",
    "warp in.png folder --name {number:3x}.png": "'{number:3x}' is no field; the fields are",
    "warp in.png folder --name {stem:9}.png": "'{stem:9}' is no field",
    "warp in.png folder --name {stem.__class__}.png": "'{stem.__class__}' is no field",
    "warp in.png folder --name {stem.png": "'{stem.png' is no field",
    "warp in.png folder --name {number}": "not a name without folders that ends in {suffix} or one of .png, .jpg",
    "warp in.png folder --name ../{stem}.png": "not a name without folders",
    "warp folder new.png --preview --name {stem}.png": "--name has no effect with --preview",
    "resize in.png web/ --scale 2": "a folder, make it first",
    "undistort in.png out.png --calibration pipe": "it is a named pipe",
    "warp in.png out.png --flow pipe": "it is a named pipe",
    "warp folder bare --preview": "name a file such as preview.png",
    "warp folder new --preview": "name a file such as preview.png",
    "warp pages.tif out.png": "it has 2 pages, and PNG stores one; write a TIFF, or choose a page with --page 1 to",
    "warp pages.tif out.png --page 3": "it has no page 3, only 2",
    "warp pages.webp out.jpg": "it has 2 frames, and JPEG stores no animation; write a GIF, WebP or PNG, or choose a",
    "warp pages.webp out.tif": "and TIFF stores no animation",
    "warp pages.webp out.gif --max-pixels 100": "2 frames of 9x6 are 0.000108 million pixels, more than the limit of",
    "warp pages.webp out.gif --page 3": "it has no page 3, only 2",
    "warp in.png out.gif --quality 5": "--quality has no effect on GIF",
    "warp in.png out.gif --compression lzw": "--compression lzw has no effect on GIF\n",
    "warp large.tif out.tif --tile --compare": "--compare needs whole images in memory",
    "warp large.tif out.tif --memory 2G": "--memory has no effect without --tile",
    "warp large.tif out.tif --tile --memory 10M": "'10M' is not a size from 1G on",
    "warp large.tif out.tif --tile --scale 0.5 --antialias": "jaxtex resize --tile first",
    "warp large.tif out.tif --tile --max-pixels 100": "more than the limit",
    "warp large.tif out.png --tile": "--tile writes TIFF",
    "warp large.tif large.tif bare --tile": "run jaxtex for each file",
    "warp - out.tif --tile": "not the stream -",
    "warp pages.tif out.tif --tile": "choose one with --page 1 to --page 2",
    "warp in.png out.tif --tile": "it is not a TIFF",
    # Sizes and transforms
    **{
        f"warp in.png out.png --size {size}": f"'{size}' is not WxH, one whole number or a percentage, above 0, such as"
        for size in ("640x", "0", "0x5", "-4", "0%", "nan%", "%", "1e300%", "1e3", "4.5", "half")
    },
    "warp in.png out.png --size 999999%": "million pixels, more than the limit",
    "warp in.png out.png --scale 0": "above 0",
    "warp in.png out.png --scale 1e-300": "too extreme",
    "warp in.png out.png --rotate nan": "not a number",
    "warp in.png out.png --matrix 1 0 0 0 1": "got 5",
    "warp in.png out.png --matrix=1,0,0,0,1": "six numbers of an affine matrix, or",
    "warp in.png out.png --matrix 1 2 0 2 4 0": "singular",
    "warp in.png out.png --matrix=1e38,1e38,1e38,1e38,1e38,1e38,1e38,1e38,1": "singular",
    "warp in.png out.png --matrix 1 0 0 0 1 0 --rotate 0": "--rotate",
    f"warp in.png out.png --perspective {THREE}": "4 arguments",
    f"warp in.png out.png --perspective {THREE} 1,2": "X,Y:X,Y",
    f"warp in.png out.png --perspective {THREE} 1,a:1,2": "not a number",
    f"warp in.png out.png --perspective {THREE} 18,0:0,9": "input points 0,0, 9,0, 18,0",
    f"warp in.png out.png --perspective {THREE} 0,9:18,0": "output points 0,0, 9,0, 18,0",
    f"warp in.png out.png --perspective {THREE} 0,9:18,1e-9": "on one line",
    "warp in.png out.png --perspective 0,0:0,0 9,0:9,9 9,9:9,0 0,9:0,9": "horizon",
    f"warp in.png out.png --perspective {SQUARE} --rotate 1": "--rotate",
    "warp in.png out.png --lens 1,2,3,4,5,6": "1 to 5",
    "warp in.png out.png --lens 0.1 --camera 9,9,4": "four numbers",
    "warp in.png out.png --lens 0.1 --camera 9,0,4,3": "above 0",
    "warp in.png out.png --lens 0.1 --distort 0.1": "--distort",
    "warp in.png out.png --rotate 1 --camera 9,9,4,3": "--lens",
    "warp in.png out.png --flow small.npy --matrix 1 0 0 0 1 0": "--matrix",
    "warp in.png out.png --flow nowhere.npy": "No such file",
    "warp in.png out.png --flow .": "Is a directory",
    "warp in.png out.png --flow cut.npy": "not a complete NumPy file",
    "warp in.png out.png --flow objects.npy": "not a complete NumPy file",
    "warp in.png out.png --flow whole.npy": "int32",
    "warp in.png out.png --flow flat.npy": "(height, width, 2)",
    "warp in.png out.png --flow three.npy": "(height, width, 2)",
    "warp in.png out.png --flow none.npy": "(height, width, 2)",
    "warp in.png out.png --flow small.npy": "--size 9x5",
    # Colors
    "warp in.png out.png --border-color 1,2,3,4,5": "1 to 4",
    "warp in.png out.png --border-color 256": "0 to 255",
    "warp in.png out.png --border-color mauve": "not 1 to 4 values from 0 to 255, #rrggbb or one of black, gray, white",
    "warp in.png out.png --border-color withe": "one of black, gray, white; did you mean white?",
    "warp in.png out.png --border-color 1 --address wrap": "wrap",
    "warp in.png out.png --border-color 1,2,3,4": "alpha",
    "warp gray.png out.png --border-color 1,2,3": "gray",
}
FLOWS = {
    "cut.npy": np.zeros((HEIGHT, WIDTH, 2)),
    "objects.npy": np.array([[[{}, {}]]]),
    "whole.npy": np.zeros((HEIGHT, WIDTH, 2), np.int32),
    "flat.npy": np.zeros((HEIGHT, WIDTH)),
    "three.npy": np.zeros((HEIGHT, WIDTH, 3)),
    "none.npy": np.zeros((0, WIDTH, 2)),
    "small.npy": np.zeros((HEIGHT - 1, WIDTH, 2)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of what the mistakes are made with."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name in ("folder", "bare"):
        (folder / name).mkdir()
    for name in ("in.png", "gray.png", "folder/in.png"):
        save(folder / name, noise(1 if name == "gray.png" else 3))
    (folder / "text.png").write_text("These are letters.\nAnd more letters.")
    (folder / "empty.tif").write_bytes(b"")
    tifffile.imwrite(folder / "float.tif", np.ones((3, 3), np.float32))
    tifffile.imwrite(folder / "whole.tif", np.ones((3, 3, 3), np.uint32), photometric="rgb")
    tifffile.imwrite(folder / "large.tif", noise(3, height=180, width=260), photometric="rgb", metadata=None)
    for suffix, file_format in ((".tif", "TIFF"), (".webp", "WEBP")):
        (folder / f"pages{suffix}").write_bytes(several(file_format))
    os.mkfifo(folder / "pipe")
    for name, flow in FLOWS.items():
        np.save(folder / name, flow, allow_pickle=True)
    os.truncate(folder / "cut.npy", os.path.getsize(folder / "cut.npy") // 2)
    return folder


def test_a_mistake_is_one_sentence_and_exit_code_2(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    for words, sentence in MISTAKES.items():
        assert sentence in refused(capsys, *shlex.split(words)), words
        assert sorted(folder.rglob("*")) == before, words


TOO_LARGE = {
    "out.jpg --size 65536x1": "65536x1 pixels are too many for JPEG, which stores 65535 a side",
    "out.webp --size 2x16384": "too many for WebP, which stores 16383 a side",
    "out.webp --size 16380x2 --compare": "16389x6 pixels are too many for WebP",
    "out.png --size 1000001x1": "too many for PNG",
    "out.tif --size 30000x30000": "30000x30000 are 900 million pixels, more than the limit of 500 million",
    "out.tif --size 30000x30000 --max-pixels 8e8": "more than the limit of 800 million",
}


def test_an_output_that_is_too_large_is_refused_before_any_work(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(codecs, "decode", lambda *_: pytest.fail("decoded"))
    for words, sentence in TOO_LARGE.items():
        err = refused(capsys, "warp", "in.png", *shlex.split(words))
        assert err.startswith(f"cannot write {words.split()[0]}: ")
        assert sentence in err
