"""The files of kernels are plain CUDA C++, which editors and compilers open with headers that the repository keeps."""

import functools
import shutil
import subprocess
import tomllib
from pathlib import Path

import jax
import pytest

from jaxtex._engine.cuda.build import source
from jaxtex._engine.cuda.build.source import Constant, config, program, scalars, struct_of
from tests.kernels import __main__ as samples
from tests.support.host_compiler import compiler

ROOT = Path(__file__).parents[2]
KERNELS = sorted(str(path.relative_to(source.FOLDER)) for path in source.FOLDER.rglob("*.cu"))
HEADERS = sorted(str(path.relative_to(source.FOLDER)) for path in source.FOLDER.rglob("*.cuh"))
# Traced functions are those of this version; see `tests/budget.toml`.
JAX = tomllib.loads((ROOT / "tests" / "budget.toml").read_text())["jax"]


@functools.cache
def headers():
    return samples.headers()


def test_the_repository_keeps_the_headers_of_a_kernel_of_each_file():
    """`python -m tests.kernels` writes them anew."""
    kept = {str(p.relative_to(samples.FOLDER)): p.read_text() for p in samples.FOLDER.rglob("*.cuh")}
    assert kept.keys() == headers().keys()
    same = headers() if jax.__version__ == JAX else {name: text for name, text in headers().items() if "config" in name}
    assert {name: kept[name] for name in same} == same


def as_editors_do(name):
    """Parses a file with the flags that editors find."""
    flags = (ROOT / "compile_flags.txt").read_text().split()
    command = [*compiler(), *flags, "-Wall", "-Wno-unused", "-fsyntax-only", name]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", KERNELS)
def test_editors_parse_each_kernel(name):
    """Without a warning."""
    done = as_editors_do(f"jaxtex/_engine/cuda/{name}")
    assert done.returncode == 0, done.stderr
    assert not done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADERS)
def test_editors_parse_each_header_by_itself(name):
    done = as_editors_do(f"jaxtex/_engine/cuda/{name}")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="CUDA's compiler is not installed")
@pytest.mark.parametrize("name", KERNELS)
def test_nvcc_compiles_each_kernel(name, tmp_path):
    folders = [f"-I{source.FOLDER}", f"-I{samples.FOLDER}"]
    command = ["nvcc", "-cubin", "-arch=sm_90", "-std=c++17", *folders, "-o", str(tmp_path / "kernel")]
    done = subprocess.run([*command, str(source.FOLDER / name)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# The one text of a kernel


def test_a_program_holds_each_header_once():
    """Where it is first included, and in one order; what all kernels call comes first."""
    text = program("scatter/adjoint.cu", headers())
    assert text.startswith(scalars())
    assert "#include" not in text.replace("#include <", "")
    assert "#pragma once" not in text
    places = [
        text.index(some) for some in ("struct Position {", "constexpr int steps", "int64 in_units(", "add_in_turns(")
    ]
    assert places == sorted(places)
    for name in HEADERS:
        assert text.count(source.read_source(name).splitlines()[0]) <= 1, name


def test_a_header_that_is_missing_is_named():
    with pytest.raises(FileNotFoundError, match=r"read/config\.cuh"):
        program("read/read.cu", {})


def test_constants_are_typed():
    constants = (
        Constant("steps", 8, "of a lane"),
        Constant("pulls", True),
        Constant("size", 2**31),
        Constant("weight", (0.5, -2.0)),
    )
    assert config("a module", constants).splitlines()[-4:] == [
        "constexpr int steps = 8;  // of a lane",
        "constexpr bool pulls = true;",
        "constexpr int64 size = 2147483648ll;",
        "DEVICE constexpr float weight(int k) { constexpr float all[] = {5.0e-01f, (-2.0e+00f)}; return all[k]; }",
    ]
    assert struct_of("Tiles", "How.", [Constant("deep", 1)]).splitlines()[2] == "  static constexpr int deep = 1;"
