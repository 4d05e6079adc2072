"""CUDA's names: what is made of the table of declarations, the names of parameters, and names with CUDA's prefix."""

import inspect
import re

import pytest

from docs._extensions.cuda_names import tables
from jaxtex import cuda
from jaxtex.cuda.declarations import DECLARATIONS, PTX
from jaxtex.cuda.names import IMPOSSIBLE
from jaxtex.cuda.structs import Struct
from tests.house import cuda_names

ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables().splitlines()]
ROWS = [row for row in ROWS if len(row) == 3 and row[0].startswith("`")]
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


def test_the_stub_is_that_of_the_declarations():
    text = cuda_names.STUB.read_text()
    assert text == cuda_names.stub(), "run `python -m tests.house.cuda_names --write`"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"[^\w, ]", "", row[0])[:40])
def test_a_row_has_names_that_exist(row):
    assert bool(here(row)) != row[2].startswith("impossible")
    for name in here(row):
        resolve(name)


def test_every_public_name_and_enumerator_is_in_the_tables():
    listed = {name for row in ROWS for name in here(row)}
    assert not sorted(set(cuda.__all__) - {name.split(".")[0] for name in listed} - OWN)
    enums = {name for name in cuda.__all__ if hasattr(getattr(cuda, name), "__members__")}
    assert not {f"{name}.{member}" for name in enums for member in getattr(cuda, name).__members__} - listed


@pytest.mark.parametrize("name", [name for name in DECLARATIONS if name not in PTX])
def test_parameters_have_cudas_names(name):
    """Without the pointers to results; options of this package are keyword only."""
    parameters = inspect.signature(getattr(cuda, name)).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == [p.name for p in DECLARATIONS[name].parameters]


def test_names_with_cudas_prefix_are_answered():
    names = {name for row in ROWS for name in names_in(row[0]) if re.fullmatch(r"cuda[A-Z]\w+", name)}
    assert len(names) > 200
    for name in names:
        if name in IMPOSSIBLE:
            with pytest.raises(AttributeError, match=f"{name}'; it is impossible in a pure function: "):
                getattr(cuda, name)
        else:
            assert getattr(cuda, name) is not None
    assert cuda.cudaMallocArray is cuda.mallocArray
    assert cuda.cudaTextureDesc is cuda.TextureDesc
    assert cuda.cudaAddressModeWrap is cuda.AddressMode.Wrap
    assert cuda.cudaArrayLayered | cuda.cudaArrayCubemap == cuda.ArrayFlags.Layered | cuda.ArrayFlags.Cubemap
    assert (cuda.cudaSuccess, cuda.cudaErrorInvalidValue) == (cuda.Error.Success, cuda.Error.InvalidValue)
    for name in ("cudaMallocArry", "nothing", "__float_as_double"):
        with pytest.raises(AttributeError, match=f"module 'jaxtex.cuda' has no attribute '{name}'$"):
            getattr(cuda, name)
