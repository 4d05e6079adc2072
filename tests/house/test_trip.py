"""The trip of a coordinate, from a public function to XLA: the files whose functions receive it, in their order."""

import dataclasses
import functools
import inspect
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

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


def caller_of(frame):
    """The file of the library from which a frame was called, through JAX or not."""
    while frame := frame.f_back:
        if file := file_of(frame):
            return file
    return None


@pytest.fixture(scope="module")
def calls():
    """The calls that receive the coordinate while one read is lowered: the caller's file, the file, the function."""
    found = []

    def note(frame, event, _):
        if event == "call" and (file := file_of(frame)):
            code = frame.f_code
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2]
            if any(has_coordinate(frame.f_locals[name]) for name in names if name in frame.f_locals):
                found.append((caller_of(frame), file, code.co_qualname))

    texture, coord = jt.texture2d(jnp.ones((8, 8, 3))), jnp.linspace(0, 1, SAMPLES)
    program = jax.jit(lambda x, y: jt.sample(texture, (x, y)))
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        program.trace(coord, coord).lower(lowering_platforms=("cpu",))
    finally:
        sys.setprofile(before)
    return found


def entered(calls):
    """The files, in the order in which the coordinate enters them."""
    return [*dict.fromkeys(file for _, file, _ in calls)]


def test_the_trip_enters_few_files(calls):
    files = entered(calls)
    assert len(files) <= MOST_FILES, f"a reader of one read follows it through {files}: which of them are one idea?"


def test_the_page_names_the_files_of_the_trip(calls):
    page = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
    section = re.search(r"^## The path of a call\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)[1]
    steps = re.findall(r"^\d\. \*\*[\w ]+\*\* \((.*?)\)", section, re.MULTILINE | re.DOTALL)
    named = [name for step in steps for name in re.findall(r"`([\w/]+\.py)`", step)]
    assert named == [file.removeprefix("_engine/") for file in entered(calls) if not file.startswith(TOOLS)]


# Methods of earlier steps that later steps still call with the coordinate. Shorten the list when one goes.
KNOWN_CLIMBS = {
    "_reads/calls.py calls ReadArguments.as_operands of _checks/arguments.py",
    "_engine/rules/primitives.py calls Read.over of _engine/describe/spec.py",
    "_engine/rules/primitives.py calls ReadSpec.color_and_operands of _engine/describe/spec.py",
    "_engine/rules/primitives.py calls ReadSpec.samples_shape of _engine/describe/spec.py",
    "_engine/forms/cpu.py calls ReadSpec.color_and_operands of _engine/describe/spec.py",
    "_engine/forms/cpu.py calls ReadSpec.samples_shape of _engine/describe/spec.py",
    "_engine/compute/operators.py calls ReadSpec.color_and_operands of _engine/describe/spec.py",
    "_engine/compute/operators.py calls ReadSpec.coords of _engine/describe/spec.py",
}


def is_property(file, function):
    """Whether a name of a module is a property: it says what an object holds."""
    value = sys.modules["jaxtex." + file.removesuffix(".py").replace("/", ".")]
    for name in function.split("."):
        value = inspect.getattr_static(value, name)
    return isinstance(value, functools.cached_property) or not inspect.isroutine(value)


def test_the_trip_never_climbs_back(calls):
    """No step gives the coordinate to a function or a method of an earlier one.

    It may ask an object that it was handed for what it holds, and call a local function that it was handed.
    """
    place = {file: k for k, file in enumerate(entered(calls))}
    climbs = {
        f"{caller} calls {function} of {file}"
        for caller, file, function in calls
        if not file.startswith(TOOLS) and place.get(caller, -1) > place[file]
        if "<" not in function and not is_property(file, function)
    }
    assert climbs == KNOWN_CLIMBS
