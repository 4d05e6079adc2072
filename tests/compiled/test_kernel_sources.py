"""The files of kernels are plain CUDA C++, which editors and compilers open with the headers of `tests.kernels`."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import jax
import pytest

from jaxtex._engine.cuda.build import source
from tests.kernels import __main__ as samples
from tests.support.host_compiler import compiler

ROOT = Path(__file__).parents[2]
KERNELS = sorted(str(path.relative_to(source.FOLDER)) for path in source.FOLDER.rglob("*.cu"))
HEADERS = sorted(str(path.relative_to(source.FOLDER)) for path in source.FOLDER.rglob("*.cuh"))
# Traced functions are those of this version; see `tests/budget.toml`.
JAX = tomllib.loads((ROOT / "tests" / "budget.toml").read_text())["jax"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The headers, as `python -m tests.kernels` writes them."""
    folder = tmp_path_factory.mktemp("headers")
    assert [*samples.write(folder)]
    return folder


@pytest.mark.skipif(jax.__version__ != JAX, reason="other versions of JAX trace other functions")
def test_the_headers_that_the_repository_keeps_are_those_of_a_kernel(folder):
    kept = {path.relative_to(samples.FOLDER): path.read_text() for path in samples.KEPT.glob("*.cuh")}
    assert kept
    assert kept == {path: (folder / path).read_text() for path in kept}


def as_editors_do(name, folder):
    """Parses a file with the flags that editors find, but for the folder of the headers."""
    flags = (ROOT / "compile_flags.txt").read_text().replace("-Itests/kernels", f"-I{folder}").split()
    command = [*compiler(), *flags, "-Wall", "-Wno-unused", "-fsyntax-only", name]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", KERNELS)
def test_editors_parse_each_kernel(name, folder):
    """Without a warning."""
    done = as_editors_do(f"jaxtex/_engine/cuda/{name}", folder)
    assert done.returncode == 0, done.stderr
    assert not done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADERS)
def test_editors_parse_each_header_by_itself(name, folder):
    done = as_editors_do(f"jaxtex/_engine/cuda/{name}", folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="CUDA's compiler is not installed")
@pytest.mark.parametrize("name", KERNELS)
def test_nvcc_compiles_each_kernel(name, folder, tmp_path):
    command = ["nvcc", "-cubin", "-arch=sm_90", "-std=c++17", f"-I{source.FOLDER}", f"-I{folder}"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "kernel"), str(source.FOLDER / name)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
