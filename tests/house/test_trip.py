"""The trip of a coordinate, from a public function to XLA: the files whose functions receive it, in their order."""

import dataclasses
import re
import sys
from pathlib import Path

import jax
import numpy as np

import jaxtex as jt

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jaxtex"
# No other array of the call has this size.
SAMPLES = 997
# What every step may use.
TOOLS = ("_jax/", "_tables/")
MOST_FILES = 20


def has_coordinate(value, depth=4):
    """Whether a value is an array of the samples, or its abstract value, or holds one."""
    if isinstance(value, jax.Array | jax.core.ShapedArray):
        return value.shape[:1] == (SAMPLES,)
    held = ()
    if isinstance(value, dict):
        held = value.values()
    elif isinstance(value, tuple | list):
        held = value
    elif dataclasses.is_dataclass(value):
        held = (getattr(value, field.name, None) for field in dataclasses.fields(value))
    return depth > 0 and any(has_coordinate(part, depth - 1) for part in held)


def file_of(frame):
    """The file of the library that a frame runs; `None` of other frames."""
    path = Path(frame.f_code.co_filename)
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None


def entered():
    """The files whose functions receive the coordinate while one read is lowered, in the order in which they do."""
    found = {}

    def note(frame, event, _):
        if event == "call" and (file := file_of(frame)):
            code = frame.f_code
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
            if any(has_coordinate(frame.f_locals[name]) for name in names if name in frame.f_locals):
                found[file] = None

    texture, coord = jt.texture2d(np.ones((8, 8, 3), np.float32)), np.linspace(0, 1, SAMPLES, dtype=np.float32)
    program = jax.jit(lambda x, y: jt.sample(texture, (x, y)))
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        program.trace(coord, coord).lower(lowering_platforms=("cpu",))
    finally:
        sys.setprofile(before)
    return [*found]


def test_the_trip_enters_few_files_which_the_page_names():
    files = entered()
    assert len(files) <= MOST_FILES, f"a reader of one read follows it through {files}: which of them are one idea?"
    page = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
    section = re.search(r"^## The path of a call\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)[1]
    steps = re.findall(r"^\d\. \*\*[\w ]+\*\* \((.*?)\)", section, re.MULTILINE | re.DOTALL)
    named = [name for step in steps for name in re.findall(r"`([\w/]+\.py)`", step)]
    assert named == [file.removeprefix("_engine/") for file in files if not file.startswith(TOOLS)]
