"""A few of the random cases of `tests/fuzz/memory.py`, and that it finds what is wrong."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import cuda
from tests.fuzz import memory as fuzz_memory
from tests.fuzz import surfaces as fuzz_surfaces
from tests.fuzz.integers import TYPES, draw_index
from tests.oracles import descriptors as descriptor_oracle
from tests.oracles import memory as memory_oracle

SAMPLES = 256
# Numbers of cases. With fewer, faults in copies, blocks and surfaces were not found.
TASKS = {
    "surfaces/uint8_numpy": (1, 3, 5),
    "surfaces/uint32_jax": (1, 4, 9),
    "surfaces/int64_numpy": (3, 6, 8),
    "surfaces/int64_jax_x64": (2, 4, 12),
    "surfaces/int_python": (3, 8),
    "cuda/uint8_numpy": (2, 6),
    "cuda/uint32_jax": (8, 11, 19),
    "cuda/int64_numpy": (0, 1),
    "cuda/uint64_jax_x64": (1, 3),
    "cuda/int_python": (1, 2, 17),
    "textures/uint32_jax": (0, 1),
    "textures/int64_numpy": (0, 1, 2),
    "textures/uint64_jax_x64": (0, 1),
    "textures/int_python": (0, 1, 2),
    "copies": (1, 2, 13, 21, 24, 81, 94),
    "descriptors": (*range(20), 75, 195, 208, 332, 352, 360),
    "gradients": (2, 3, 8, 11),
    "values": (13, 22, 32, 65, 91, 227, *range(10)),
    "blocks": (*range(16), 25),
}

pytestmark = pytest.mark.usefixtures("default_promotion")


@pytest.mark.parametrize("task", TASKS)
def test_cases_agree(task):
    done = [fuzz_memory.check(task, number, 1, SAMPLES) for number in TASKS[task]]
    assert sum(values for _, values in done) > 0


def test_a_number_is_a_case():
    first, second = (draw_index(np.random.default_rng(5), TYPES["uint64_numpy"], 7, (400,)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    exact = memory_oracle.exact(first)
    assert (exact == 3).any()
    assert exact.max() == memory_oracle.FAR  # far beyond what 32 bits hold


@pytest.mark.parametrize("wrong", ["a texel", "a bit of a NaN", "a dtype", "a shape"])
def test_a_difference_is_found(wrong):
    found = expected = np.array([[1.0, np.nan], [3.0, 4.0]], np.float32)
    assert fuzz_surfaces.assert_same(found, expected, "values") == 4
    if wrong == "a texel":
        found = found + np.float32([[0, 0], [0, 1]])
    elif wrong == "a bit of a NaN":
        found = (found.view(np.uint32) ^ np.uint32([[0, 1], [0, 0]])).view(np.float32)
    elif wrong == "a dtype":
        found = found.astype(np.float16)
    else:
        found = found[0]
    with pytest.raises(AssertionError, match="values: "):
        fuzz_surfaces.assert_same(found, expected, "values")


def test_a_wrong_texel_fails_and_says_how_to_repeat_it(monkeypatch, capsys):
    right = jt.surface_read

    def off_by_one(texture, coords, **options):
        return right(texture, (jnp.asarray(coords[0]) + 1, *coords[1:]), **options)

    options = fuzz_memory.options_of(["--accesses", "3000", "--samples", "200", "--types", "int16_numpy"])
    assert fuzz_memory.run("surfaces/int16_numpy", options, 0, 1).failed == 0
    monkeypatch.setattr(jt, "surface_read", off_by_one)
    count = fuzz_memory.run("surfaces/int16_numpy", options, 0, 1)
    assert 0 < count.failed < count.cases
    assert "  python -m tests.fuzz.memory --case surfaces/int16_numpy/" in capsys.readouterr().out


def test_conversions_of_the_oracle():
    """C's conversion to int, and exact numbers of every width."""
    unsigned = np.array([2**32 - 1, 2**31, 2**32 + 3], np.uint64)
    assert memory_oracle.as_int(unsigned).tolist() == [-1, -(2**31), 3]
    assert memory_oracle.exact(unsigned).tolist() == [2**32 - 1, 2**31, 2**32 + 3]
    assert memory_oracle.as_int(np.array([2**33], np.int64)).tolist() == [2**33]
    assert memory_oracle.exact(-(10**30)) == -memory_oracle.FAR
    assert [memory_oracle.rounded(n, 8) for n in (257, 259, 383, 384, -511)] == [256, 260, 384, 384, -512]


def test_python_integers_are_exact_where_unsigned_ones_wrap():
    """A Python integer from 2^63 on is no unsigned number, although NumPy would make one of it."""
    t = cuda.createTextureObject(cuda.ResourceDesc.Linear(np.arange(5, 9, dtype=np.int32)), cuda.TextureDesc())
    found = [int(cuda.tex1Dfetch(t, x)) for x in (2, 2**63 + 2, 2**64 + 2, np.uint64(2**63 + 2))]
    assert found == [7, 0, 0, 7]


def test_tables_of_the_oracle():
    """Section by section what CUDA documents: formats, shapes, read modes."""
    floats, integers = (32, 0, 0, 0), (32, 32, 0, 0)
    assert descriptor_oracle.faults_of_format((8, 8, 8, 0), 1) == {20}
    assert descriptor_oracle.faults_of_read(integers, 0, 1, 1) == {26}
    assert descriptor_oracle.faults_of_read(integers, 0, 1, 0) == {27}
    assert descriptor_oracle.faults_of_read(floats, 2, 0, 1) == set()
    assert descriptor_oracle.kind_of((4, 4, 12), 5) == "cubemap layered"
    assert descriptor_oracle.level_sizes((5, 3, 0), 0, 99) == [(5, 3, 0), (2, 1, 0), (1, 1, 0)]
