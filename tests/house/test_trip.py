"""The trip of a coordinate, from a public function to XLA: the files whose functions receive it, in their order."""

import dataclasses
import re
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxtex as jt

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jaxtex"
# No other array of the call has this size.
SAMPLES = 997
# What every step may use.
TOOLS = ("_jax/", "_tables/", "_checks/numbers.py")
# Values that travel: every later step may ask them what they hold, by methods and by functions of their files.
TRAVELERS = ("_engine/describe/", "_engine/walk/texel_walk.py:TexelAddress.")
ASKS = "_jax/primitives.py"
MOST_FILES = 20
# From a public function to the primitive that it binds, both ends included.
MOST_FUNCTIONS = 8


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
    """The functions and methods that receive the coordinate while one read is lowered.

    Returns:
        The file of each, its name and the file that called it, in the order of the first calls. Other packages and
        tools may stand between both, but for the one by which JAX asks a primitive for its form.
    """
    found = {}

    def note(frame, event, _):
        if event == "call" and (file := file_of(frame)):
            code = frame.f_code
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
            if any(has_coordinate(frame.f_locals[name]) for name in names if name in frame.f_locals):
                caller = frame.f_back
                while caller and (file_of(caller) or TOOLS[0]).startswith(TOOLS) and file_of(caller) != ASKS:
                    caller = caller.f_back
                found[file, code.co_qualname, caller and file_of(caller)] = None

    texture, coord = jt.texture2d(np.ones((8, 8, 3), np.float32)), np.linspace(0, 1, SAMPLES, dtype=np.float32)
    program = jax.jit(lambda x, y: jt.sample(texture, (x, y)))
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        program.trace(coord, coord).lower(lowering_platforms=("cpu",))
    finally:
        sys.setprofile(before)
    return [*found]


def stack_of_bind(call, *args):
    """The functions of the library on the stack where JAX is first asked to bind a primitive of a texture."""
    found = []

    def note(frame, event, _):
        if event != "call" or found or frame.f_code.co_qualname != "Primitive.bind":
            return
        of_texture = frame.f_locals["self"].name.startswith("texture_")
        while of_texture and (frame := frame.f_back):
            if file := file_of(frame):
                found.append(f"{file}:{frame.f_code.co_qualname}")

    program, before = jax.jit(call), sys.getprofile()
    sys.setprofile(note)
    try:
        program.trace(*args)
    finally:
        sys.setprofile(before)
    return found[::-1]


CALLS = {
    "sample": lambda texture, at, indices: jt.sample(texture, at),
    "gather": lambda texture, at, indices: jt.gather(texture, at),
    "fetch": lambda texture, at, indices: jt.fetch(texture, indices),
    "splat": lambda texture, at, indices: jt.splat(texture.texels[0], at, (8, 8, 3)).texels,
}


@pytest.mark.parametrize("name", CALLS)
def test_few_functions_stand_between_a_call_and_its_primitive(name):
    # Sizes that no other test has, so that JAX has kept no trace of the call.
    texture = jt.texture2d(np.ones((8, 19, 3), np.float32))
    at = (np.linspace(0, 1, 19, dtype=np.float32),) * 2
    functions = stack_of_bind(CALLS[name], texture, at, (np.arange(19),) * 2)
    assert functions
    assert len(functions) <= MOST_FUNCTIONS, f"which of {functions} only forward?"


def test_the_trip_enters_few_files_which_the_page_names_and_climbs_back_into_none():
    calls = entered()
    files = [*dict.fromkeys(file for file, _, _ in calls)]
    assert len(files) <= MOST_FILES, f"a reader of one read follows it through {files}: which of them are one idea?"
    page = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
    section = re.search(r"^## The path of a call\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)[1]
    steps = re.findall(r"^\d\. \*\*[\w ]+\*\* \((.*?)\)", section, re.MULTILINE | re.DOTALL)
    named = [re.findall(r"`([\w/]+\.py)`", step) for step in steps]
    assert [file for step in named for file in step] == [
        file.removeprefix("_engine/") for file in files if not file.startswith(TOOLS)
    ]
    # What is called by a later step than its own: functions, and methods too.
    place = {file: number for number, step in enumerate(named) for file in step}
    step = lambda file: place.get((file or "").removeprefix("_engine/"), -1)
    back = [call for call in calls if not call[0].startswith(TOOLS) and step(call[0]) < step(call[2])]
    assert not [call for call in back if not f"{call[0]}:{call[1]}".startswith(TRAVELERS)]
