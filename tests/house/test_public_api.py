"""The public interface: no name and no signature changes without a line in the changelog."""

import importlib
import pkgutil
import re

import pytest

import jaxtex
from tests.house import public_api

CHANGELOG = (public_api.ROOT / "CHANGELOG.md").read_text()


@pytest.fixture(scope="module")
def lines():
    for library in ("equinox", "flax"):
        pytest.importorskip(library)
    return public_api.public_api()


def test_the_public_names_are_as_recorded(lines):
    before = public_api.CURRENT.read_text().splitlines()
    changes = [f"{'+' if line in lines else '-'} {line}" for line in sorted({*lines} ^ {*before})]
    assert not changes, (
        f"the public interface changed: run `python -m tests.house.public_api --write`, and add a line to the section "
        f"[{top_version()}] of CHANGELOG.md"
    )


def test_dir_lists_public_names_alone():
    package = {name.split(".")[1] for name in public_api.MODULES[1:]}
    for library in ("equinox", "flax"):
        pytest.importorskip(library)
    for module in (*public_api.MODULES, *public_api.DEFINING):
        imported = importlib.import_module(f"jaxtex{module}")
        # CUDA's own names are completed too; `import *` takes those without the prefix.
        more = {"__version__", *package} if imported is jaxtex else {*getattr(imported, "WITH_PREFIX", ())}
        assert dir(imported) == sorted({*imported.__all__} | more)
        assert all(hasattr(imported, name) for name in dir(imported))


def test_the_names_of_jaxtex_are_those_of_the_modules_that_define_them():
    modules = [importlib.import_module(f"jaxtex{module}") for module in public_api.DEFINING]
    assert sorted(name for module in modules for name in module.__all__) == jaxtex.__all__


def test_every_module_without_an_underscore_is_public():
    names = {f".{found.name}" for found in pkgutil.iter_modules(jaxtex.__path__) if not found.name.startswith("_")}
    public = (*public_api.DEFINING, *public_api.MODULES)
    assert names - {".cli"} == {name for name in public if name.count(".") == 1}


def test_the_changelog_names_what_changed_since_the_last_release():
    version, before = public_api.recorded()
    text = public_api.since(version, CHANGELOG)
    missing = public_api.unnamed(public_api.CURRENT.read_text().splitlines(), before, text)
    assert not missing, f"the sections of CHANGELOG.md above [{version}] name neither these nor their classes"


def top_version():
    return re.search(r"^## \[(.+?)\]", CHANGELOG, re.MULTILINE)[1]
