"""The table of CUDA's names in docs/porting-cuda.md: its names exist, and it has every public name."""

import inspect
import re
from pathlib import Path

import pytest

from jaxtex import cuda
from jaxtex.cuda.signatures import HOST_FUNCTIONS, SIGNATURES
from jaxtex.cuda.structs import Struct

PAGE = (Path(__file__).parents[3] / "docs" / "porting-cuda.md").read_text().partition("## Every name")[2]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
ROWS = [row for row in ROWS if row != ["CUDA", "here", ""]]
VERDICTS = ("same", "different: ", "impossible in a pure function: ")
SAME_NAMES = "the same names"
# Public names that CUDA does not have.
OWN = {"NEWEST_COMPUTE_CAPABILITY"}


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


def here(row):
    """The names of `jaxtex.cuda` in a row."""
    return names_in(row[0] if row[1] == SAME_NAMES else row[1])


def resolve(name):
    """What a name such as ``TextureDesc.filterMode`` is, of a zeroed struct."""
    first, *rest = name.split(".")
    value = getattr(cuda, first)
    if inspect.isclass(value) and issubclass(value, Struct) and rest:
        value = value("float") if value is cuda.TextureReference else value()
    for part in rest:
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"[^\w, ]", "", row[0])[:40])
def test_a_row_has_a_verdict_and_names_that_exist(row):
    cuda_names, _, verdict = row
    assert names_in(cuda_names)
    assert verdict == "same" or any(verdict.startswith(start) and verdict != start for start in VERDICTS[1:])
    if verdict.startswith("impossible"):
        assert not here(row)
    else:
        assert here(row)
    for name in here(row):
        resolve(name)


def test_functions_have_cudas_names_without_the_prefix():
    functions = {name for row in ROWS for name in names_in(row[0]) if re.fullmatch("cuda[A-Z]\\w+", name)}
    for name in HOST_FUNCTIONS:
        assert f"cuda{name[0].upper()}{name[1:]}" in functions
        assert callable(getattr(cuda, name))
    for name in SIGNATURES:
        assert callable(getattr(cuda, name))


def test_every_public_name_is_in_the_table():
    listed = {name.split(".")[0] for row in ROWS for name in here(row)}
    assert not sorted(set(cuda.__all__) - listed - OWN)


def test_every_field_and_enumerator_is_in_the_table():
    listed = {name for row in ROWS for name in here(row)}
    for name in (
        "ChannelFormatDesc",
        "TextureDesc",
        "ResourceViewDesc",
        "Memcpy3DParms",
        "PitchedPtr",
        "Pos",
        "Extent",
    ):
        struct = getattr(cuda, name)
        assert not {f"{name}.{field}" for field in struct.__dataclass_fields__} - listed
    enums = {name for name in cuda.__all__ if hasattr(getattr(cuda, name), "__members__")}
    assert not {f"{name}.{member}" for name in enums for member in getattr(cuda, name).__members__} - listed


def test_functions_take_the_arguments_of_their_declarations():
    """Without the pointers to results, which come first; options of this package are keyword only."""
    for name, declared in HOST_FUNCTIONS.items():
        parameters = inspect.signature(getattr(cuda, name)).parameters.values()
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        count = len([part for part in declared.split(", ") if part])
        results = RESULTS.get(name, 0)
        assert len(positional) == count - results, name


# How many of the first parameters in CUDA are pointers to results that are returned here.
RESULTS = {
    "arrayGetInfo": 3,
    **dict.fromkeys(
        (
            "arrayGetPlane",
            "createSurfaceObject",
            "createTextureObject",
            "deviceGetTexture1DLinearMaxWidth",
            "getChannelDesc",
            "getMipmappedArrayLevel",
            "getSurfaceObjectResourceDesc",
            "getSurfaceReference",
            "getTextureAlignmentOffset",
            "getTextureObjectResourceDesc",
            "getTextureObjectResourceViewDesc",
            "getTextureObjectTextureDesc",
            "getTextureReference",
            "malloc",
            "malloc3D",
            "malloc3DArray",
            "mallocArray",
            "mallocMipmappedArray",
        ),
        1,
    ),
    "mallocPitch": 2,
}
