"""Compiled programs that the command line keeps from one run to the next."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from PIL import Image

import jaxtex
from jaxtex._jax import program_files
from jaxtex.cli import jax_start
from jaxtex.warp.sized import kept

FOLDERS = [
    ("linux", {"HOME": "/home/ada"}, "/home/ada/.cache/jaxtex"),
    ("linux", {"HOME": "/home/ada", "XDG_CACHE_HOME": "/var/ada"}, "/var/ada/jaxtex"),
    ("linux", {"HOME": "/home/ada", "XDG_CACHE_HOME": "relative"}, None),
    ("linux", {}, None),
    ("darwin", {"HOME": "/Users/ada"}, "/Users/ada/Library/Caches/jaxtex"),
    ("win32", {"USERPROFILE": "/ada"}, None),
    ("win32", {"LOCALAPPDATA": "/ada/local"}, "/ada/local/jaxtex"),
]


def test_folders_of_platforms():
    for platform, environment, folder in FOLDERS:
        assert program_files.cache_folder(environment, platform) == (folder and Path(folder))


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """An environment that is taken back, with an empty cache folder."""
    for name in (jax_start.CACHE_FOLDER, jax_start.CACHE_SWITCH, *jax_start.KEEP_ALL):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(jax_start.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return monkeypatch


def test_what_is_kept_and_where(environment, tmp_path):
    """Not where it could not be, or where the user has decided."""
    folder = tmp_path / "jaxtex"
    with environment.context() as patch:
        patch.setenv(jax_start.CACHE_SWITCH, "0")
        assert jax_start.keep_compilations() is None
        assert not folder.exists()
        patch.delenv(jax_start.CACHE_SWITCH)
        patch.setenv(jax_start.CACHE_FOLDER, "/elsewhere")
        assert jax_start.keep_compilations() is None
        assert os.environ[jax_start.CACHE_FOLDER] == "/elsewhere"
    folder.write_text("a file")
    assert jax_start.keep_compilations() is None
    folder.unlink()
    folder.mkdir()
    folder.chmod(0o777)  # others may write to it, and its files would run as code
    assert jax_start.keep_compilations() is None
    folder.chmod(0o755)
    with environment.context() as patch:
        patch.setattr(jax_start.os, "getuid", lambda: folder.stat().st_uid + 1)
        assert jax_start.keep_compilations() is None
    assert jax_start.CACHE_FOLDER not in os.environ
    folder.rmdir()
    assert jax_start.keep_compilations() == folder
    assert os.environ[jax_start.CACHE_FOLDER] == str(folder)
    assert folder.is_dir()


def test_what_was_not_used_for_longest_is_deleted(tmp_path):
    for age in range(5):
        path = tmp_path / f"program{age}"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    program_files.delete_oldest(tmp_path, 250)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["program0", "program1"]


def doubled(x):
    return 2 * x


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """An empty folder of programs, in which those of the first CPU are kept."""
    monkeypatch.setattr(kept.Folder, "path", tmp_path)
    return tmp_path


@pytest.fixture
def cache_is_off():
    """A program that came from JAX's cache could not be written to another file."""
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    yield
    jax.config.update("jax_enable_compilation_cache", before)


def run_kept(key, compilations):
    x = np.float32(3)

    def compile_program():
        compilations.append(key)
        return jax.jit(doubled).lower(x).compile()

    return float(kept.kept(key, jax.devices("cpu")[0], compile_program)(x))


def test_a_program_is_compiled_once_for_a_key(programs, cache_is_off, monkeypatch):
    compilations = []
    for key in ("a", "a", ("b", doubled), ("b", doubled)):
        assert run_kept(key, compilations) == 6
    assert compilations == ["a", ("b", doubled)]
    # A function without a name is not kept.
    for _ in range(2):
        run_kept(lambda: None, compilations)
    assert (len(compilations), len(list(programs.iterdir()))) == (4, 2)
    # A change of what a program is made from is another key.
    for name, value in (("JAX_ENABLE_X64", "1"), ("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")):
        monkeypatch.setenv(name, value)
        kept.fingerprint.cache_clear()
        run_kept("a", compilations)
    monkeypatch.undo()
    kept.fingerprint.cache_clear()
    assert len(compilations) == 6


def test_a_damaged_file_is_replaced(programs, cache_is_off):
    compilations = []
    run_kept("a", compilations)
    (file,) = programs.iterdir()
    for content in (b"", b"no program", file.read_bytes()[:-100], file.read_bytes()):
        file.write_bytes(content)
        assert run_kept("a", compilations) == 6
    assert len(compilations) == 4


def test_a_changed_module_is_another_source(tmp_path):
    (tmp_path / "part").mkdir()
    for path in ("a.py", "part/b.cu", "part/c.txt"):
        (tmp_path / path).write_text(path)
    before = kept.sources(tmp_path)
    assert [Path(path).name for path, *_ in before] == ["a.py", "b.cu"]
    (tmp_path / "part/b.cu").write_text("longer than before")
    assert kept.sources(tmp_path) != before


def test_only_programs_of_cpus_are_kept(programs, monkeypatch):
    monkeypatch.setattr(kept.jax.config, "update", lambda *_: pytest.fail("JAX's cache stays on"))
    with kept.keep_in(programs, SimpleNamespace(platform="gpu")):
        assert kept.Folder.path is None


@pytest.mark.slow
def test_a_second_run_compiles_nothing(tmp_path):
    """Its programs have the names of those in the folder, it adds none, and its image is the same."""
    Image.fromarray(np.arange(60, dtype=np.uint8).reshape(4, 5, 3)).save(tmp_path / "in.png")
    command = [sys.executable, "-m", "jaxtex", "warp", "in.png", "out.png", "--rotate", "10", "--antialias"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"PYTHONPATH": str(Path(jaxtex.__file__).parents[1]), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found, images = [], []
    for _ in range(2):
        subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, check=True)
        found.append({p.name: p.stat().st_mtime_ns for p in (tmp_path / "cache" / "jaxtex").iterdir()})
        images.append((tmp_path / "out.png").read_bytes())
    assert found[0] == found[1] != {}
    assert {Path(name).suffix for name in found[0]} == {kept.SUFFIX}
    assert images[0] == images[1]
