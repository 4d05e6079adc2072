"""Compiled programs that the command line keeps from one run to the next."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import jaxtex
from jaxtex.cli import jax_start


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {"HOME": "/home/ada"}, "/home/ada/.cache/jaxtex"),
        ("linux", {"HOME": "/home/ada", "XDG_CACHE_HOME": "/var/ada"}, "/var/ada/jaxtex"),
        ("linux", {"HOME": "/home/ada", "XDG_CACHE_HOME": "relative"}, None),
        ("linux", {}, None),
        ("darwin", {"HOME": "/Users/ada"}, "/Users/ada/Library/Caches/jaxtex"),
        ("win32", {"USERPROFILE": "/ada"}, None),
        ("win32", {"LOCALAPPDATA": "/ada/local"}, "/ada/local/jaxtex"),
    ],
)
def test_folders_of_platforms(platform, environment, folder):
    assert jax_start.cache_folder(environment, platform) == (None if folder is None else Path(folder))


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """An environment that is taken back, with an empty cache folder."""
    for name in (jax_start.CACHE_FOLDER, jax_start.CACHE_SWITCH, *jax_start.KEEP_ALL):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(jax_start.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return monkeypatch


def test_jax_is_told_of_the_folder(environment, tmp_path):
    assert jax_start.keep_compilations() == tmp_path / "jaxtex"
    assert os.environ[jax_start.CACHE_FOLDER] == str(tmp_path / "jaxtex")
    assert (tmp_path / "jaxtex").is_dir()


def test_a_folder_of_the_user_is_left_alone(environment):
    environment.setenv(jax_start.CACHE_FOLDER, "/elsewhere")
    assert jax_start.keep_compilations() is None
    assert os.environ[jax_start.CACHE_FOLDER] == "/elsewhere"


def test_nothing_is_kept_if_jax_keeps_nothing(environment, tmp_path):
    environment.setenv(jax_start.CACHE_SWITCH, "0")
    assert jax_start.keep_compilations() is None
    assert not (tmp_path / "jaxtex").exists()


def test_nothing_is_kept_where_no_folder_can_be_made(environment, tmp_path):
    (tmp_path / "jaxtex").write_text("a file")
    assert jax_start.keep_compilations() is None
    assert jax_start.CACHE_FOLDER not in os.environ


def test_what_was_not_used_for_longest_is_deleted(tmp_path):
    for age in range(5):
        path = tmp_path / f"program{age}"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    jax_start.delete_oldest(tmp_path, 250)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["program0", "program1"]


@pytest.mark.slow
def test_a_second_run_compiles_nothing(tmp_path):
    """Its programs have the names of those in the folder, and it adds none."""
    Image.fromarray(np.arange(60, dtype=np.uint8).reshape(4, 5, 3)).save(tmp_path / "in.png")
    command = [sys.executable, "-m", "jaxtex", "warp", "in.png", "out.png", "--rotate", "10"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"PYTHONPATH": str(Path(jaxtex.__file__).parents[1]), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    kept = []
    for _ in range(2):
        subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, check=True)
        kept.append({p.name for p in (tmp_path / "cache" / "jaxtex").iterdir() if p.name.endswith("-cache")})
    assert kept[0] == kept[1] != set()
