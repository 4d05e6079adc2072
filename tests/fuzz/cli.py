"""Command lines drawn at random, with whole and damaged files. A seed is a command line.

A command ends with exit code 0 or 2, never with an exception. Code 2 comes with a sentence. Inputs keep their bytes,
all pictures that were written can be opened, and nothing else is left in the folder.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tifffile
from PIL import Image

from jaxtex.cli import main
from jaxtex.cli.commands import command_parser
from tests.fuzz.draws import naming, pick

# A list that grew would give its seeds other commands.
DRAWN_COMMANDS = ("resize", "rotate", "undistort", "warp", "info", "completion")
DRAWN_COMMANDS += ("warp", "resize", "rotate", "undistort") * 3
# Of one picture, so that no size that is drawn takes long.
MOST_PIXELS = 4000
SUFFIXES = (".png", ".jpg", ".tif", ".webp")
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".tif": "TIFF", ".webp": "WEBP"}
MODES = {".png": ("L", "LA", "RGB", "RGBA", "P", "1", "I;16"), ".jpg": ("L", "RGB", "CMYK")}
MODES |= {".tif": ("L", "RGB", "RGBA", "CMYK", "I;16", "F"), ".webp": ("RGB", "RGBA")}
NAMES = ("photo", "a b", "-dash", "ü", "x'y", ".hidden", "50%", "new\nline")
# Of each list, the first GOOD are what a command takes.
GOOD = 2
NUMBERS = ("0.5", "1.2", "0", "1", "-1", "20", "-0.3", "1e-9", "1e9", "1e400", "nan", "inf", "-inf")
NUMBERS += ("", "x", "1,5", "0x10", "١")
LISTS = ("-0.2,0.05", "0.1", "0.1,0.2,0.3,0.4,0.5,0.6", "1,", ",", "9,9,4,3", "9,0,4,3", "nan,1,1,1", "1e300,1e300,1,1")
CORNERS = ("0,0:1,1", "9,0:8,0", "0,6:0,5", "9,6:9,7")
POINTS = (*CORNERS, "0,0:0,0", "1:2", "1,2:3", "a,b:c,d", "1e30,0:0,0", "nan,0:0,0")
SIZES = ("4x3", "1x1", "0x5", "40x30", "99999x99999", "4", "4x", "-4x3", "4X3", "1e3x2")
COLORS = ("0", "255,0,0", "#102030", "#10203040", "white", "256", "1,2,3,4,5", "#12", "#gggggg", "-1", "nan")
OTHERS = {"--quality": ("1", "100", "0", "101", "x"), "--jobs": ("1", "2", "0", "999999", "-1", "1.5")}
OTHERS |= {"--memory": ("1G", "4G", "1M", "2", "1GB", "9999999T"), "--page": ("1", "2", "0", "99", "-1")}
OTHERS |= {"--device": ("cpu", "CPU:0", "cpu:99", "gpu:77", "rocket", "", ":"), "--size": SIZES, "--fit": SIZES}
OTHERS |= {"--border-color": COLORS, "--perspective": POINTS, "--max-pixels": ("100", "4e3", "0", "-1", "1e", "4000")}
OTHERS |= {"--lens": LISTS, "--distort": LISTS, "--camera": ("9,9,4,3", "5,6,0,0", *LISTS)}
# What a command cannot do without.
NEEDED = {"resize": ("--size", "--scale", "--fit"), "undistort": ("--lens", "--distort", "--calibration")}
WORDS = ("--", "-", "--no-such", "--scal", "-x", "---", "=", "\u0000", "--scale=2", "--help", "-h")
NOT_DRAWN = ("--max-pixels", "-h")


class Case(NamedTuple):
    """The words of a command line, the files of its folder, and what is on standard input."""

    words: list[str]
    files: dict[str, bytes]
    stdin: bytes


def picture(rng, suffix):
    mode, size = pick(rng, MODES[suffix]), (int(rng.integers(1, 12)), int(rng.integers(1, 12)))
    if mode in ("I;16", "F"):
        numbers = rng.integers(0, 65535, size[::-1])
        image = Image.fromarray(numbers.astype(np.uint16 if mode == "I;16" else np.float32))
    else:
        bands = 4 if mode == "CMYK" else len(Image.new(mode, (1, 1)).getbands())
        shape = size[::-1] if mode in ("L", "P", "1") else (*size[::-1], bands)
        numbers = rng.integers(0, 256, shape, np.uint8)
        image = Image.fromarray(numbers, mode if mode not in ("P", "1") else "L").convert(mode)
    stream = io.BytesIO()
    image.save(stream, FORMATS[suffix])
    return stream.getvalue()


def flow(rng):
    """A NumPy file: of displacements, or of something else."""
    array = rng.normal(size=pick(rng, ((6, 9, 2), (2, 2), (6, 9, 3), (0, 0, 2)))).astype(pick(rng, ("f4", "f8", "i4")))
    if rng.random() < 0.3:
        array = array * np.nan if array.dtype.kind == "f" else array.astype(object)
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def calibration(rng):
    """A file of OpenCV's, in YAML or JSON."""
    data, rows = pick(rng, (([9, 0, 4, 0, 9, 3, 0, 0, 1], 3), ([0] * 9, 3), ([1e308] * 9, 3), ([1, 2], 3))), 3
    matrix = {"rows": rows, "cols": 3, "dt": "d", "data": data[0]}
    lens = [0.1, -0.02, 0.0, 0.0][: int(rng.integers(0, 5))]
    if rng.random() < 0.5:
        return json.dumps({"camera_matrix": matrix, "distortion_coefficients": lens}).encode()
    fields = "\n".join(f"   {name}: {value}" for name, value in matrix.items())
    return f"%YAML:1.0\n---\ncamera_matrix: !!opencv-matrix\n{fields}\ndist_coeffs: {lens}\n".encode()


def damaged(rng, data):
    """Most often the bytes; else a part of them, with others in their middle, or none."""
    way = rng.random()
    if way < 0.7 or not data:
        return data
    if way < 0.8:
        return data[: int(rng.integers(0, len(data)))]
    if way < 0.97:
        changed = bytearray(data)
        for _ in range(int(rng.integers(1, 9))):
            changed[int(rng.integers(len(data)))] = int(rng.integers(256))
        return bytes(changed)
    return pick(rng, (b"", b"\0", b"not a picture\n", b"[" * 5000))


def values_of(rng, action, files, tame):
    """The words behind an option; tame ones are those that it takes."""
    option = action.option_strings[0 if action.option_strings[0] in OTHERS else -1]
    if action.nargs == 0:
        return []
    if option in ("--flow", "--calibration"):
        return ["flow.npy" if option == "--flow" else "camera.yml"] if tame else [pick(rng, [*files, "missing"])]
    if option == "--perspective" and tame:
        return [*CORNERS]
    choices = [*map(str, action.choices)] if action.choices else OTHERS.get(option, NUMBERS)
    if tame:
        choices = choices if action.choices else choices[:GOOD]
    elif rng.random() < 0.1:
        choices = NUMBERS
    drawn = [pick(rng, choices) for _ in range(action.nargs or 1)]
    return drawn if tame or rng.random() < 0.95 else drawn[1:]


def files_of(rng, tame):
    """A folder: pictures, a flow and a calibration, some of them damaged."""
    files, keep = {}, (lambda data: data) if tame else (lambda data: damaged(rng, data))
    for _ in range(int(rng.integers(1, 4))):
        suffix = pick(rng, SUFFIXES)
        folder = "folder/" if rng.random() < 0.3 else ""
        name = f"{folder}{pick(rng, NAMES)}{suffix if tame or rng.random() < 0.95 else '.txt'}"
        files[name] = damaged(rng, picture(rng, suffix))
    return files | {"flow.npy": keep(flow(rng)), "camera.yml": keep(calibration(rng))}


def paths_of(rng, files, tame):
    pictures = [name for name in files if name not in ("flow.npy", "camera.yml")]
    if tame:
        inputs = [name if name[0] != "-" else f"./{name}" for name in pictures]
        return [pick(rng, inputs), pick(rng, ("out" + pick(rng, SUFFIXES), "-"))]
    inputs = [*pictures, *files, "folder", "-", "missing.png"]
    words = [pick(rng, inputs) for _ in range(1 if rng.random() < 0.8 else 2)]
    return [*words, pick(rng, ("out" + pick(rng, SUFFIXES), "out.xyz", "out", "-", "out/deep/er.png", words[0]))]


def case_of(seed):
    """The command line of a seed: half of them tame, so that most of these are carried out."""
    rng = np.random.default_rng([seed, 71])
    tame = rng.random() < 0.5
    files, stdin = files_of(rng, tame), damaged(rng, picture(rng, ".png"))
    name = pick(rng, DRAWN_COMMANDS)
    if rng.random() < 0.03:
        return Case([pick(rng, (*WORDS, "wrap", name.upper(), ""))], files, stdin)
    if name in ("info", "completion"):
        words = [name, *[pick(rng, ("bash", "zsh", "fish", "sh", ""))] * (rng.random() < 0.8)]
        return Case([*words, *[pick(rng, WORDS)] * (rng.random() < 0.2)], files, stdin)
    words = [name, "--max-pixels", str(MOST_PIXELS), *paths_of(rng, files, tame)]
    actions = {a.option_strings[0]: a for a in command_parser(name)._actions if a.option_strings}
    drawn = [option for option, action in actions.items() if action.required]
    if name in NEEDED and (tame or rng.random() < 0.7):
        drawn.append(pick(rng, NEEDED[name]))
    some = [option for option in actions if option not in NOT_DRAWN]
    drawn += [pick(rng, some) for _ in range(int(rng.integers(0, 4)))]
    for option in drawn:
        action = actions[option]
        words += [pick(rng, action.option_strings), *values_of(rng, action, files, tame)]
    if not tame and rng.random() < 0.1:
        words.insert(int(rng.integers(1, len(words) + 1)), pick(rng, WORDS))
    return Case(words, files, stdin)


class Stream(io.TextIOWrapper):
    """Text over bytes in memory."""

    def __init__(self, data=b""):
        super().__init__(io.BytesIO(data), "utf-8", write_through=True)

    def data(self):
        return self.buffer.getvalue()


@contextlib.contextmanager
def streams(stdin):
    """Standard streams in memory: output and errors."""
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = Stream(stdin), Stream(), Stream()
    try:
        yield sys.stdout, sys.stderr
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def listing(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(case):
    """Runs a command line in a folder of its own: the exit code, what it printed, and the files afterwards."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name, data in case.files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        os.chdir(folder)
        try:
            with streams(case.stdin) as (out, err):
                try:
                    code = main(case.words)
                except SystemExit as end:  # --help and --version
                    code = end.code or 0
            return code, out.data(), err.data().decode(), listing(Path(folder))
        finally:
            os.chdir(here)


def open_picture(data):
    """Decodes all of a picture that the command line has written."""
    if data[:2] in (b"II", b"MM"):
        with tifffile.TiffFile(io.BytesIO(data)) as file:
            assert all(page.asarray().size for page in file.pages)
    else:
        with Image.open(io.BytesIO(data)) as image:
            image.load()


def check(seed):
    """Runs the command line of a seed.

    Raises:
        AssertionError: if it does not end as a command line must.
    """
    case = case_of(seed)
    with naming(f"jaxtex {' '.join(map(repr, case.words))}"):
        code, _, err, files = run(case)
        assert code in (0, 2), f"exit code {code}"
        assert "Traceback" not in err, err
        assert code == 0 or "error: " in err, f"exit code 2, and it says {err!r}"
        target = next((word for word in case.words if word.startswith("out")), None)
        # A file may be its own output, and parts of one by --tile wait for --resume.
        replaced = {name for name in case.files if case.words.count(name) > 1 or name.startswith("folder/")}
        changed = {name for name in files if case.files.get(name) != files[name]} - replaced
        if target is None:
            target = "out"
        strange = {name for name in changed if not name.startswith((target, "out"))}
        assert not strange, f"it left {sorted(strange)}"
        assert not {name for name in case.files if name not in files}, "an input is gone"
        if "--tile" not in case.words:
            for name in changed:
                open_picture(files[name])
    return code
