"""What a release says about itself: versions, dates, dependencies and limits agree wherever they stand."""

import re
import tomllib
from pathlib import Path

import jaxtex
from jaxtex._engine.cuda.build.nvrtc import LEAST_VERSION
from jaxtex.cli.calibration import LARGEST_FILE
from jaxtex.cli.jax_start import MOST_BYTES
from jaxtex.cli.options import MAX_PIXELS

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
PAGES = ("CHANGELOG.md", "CITATION.cff", "conda/recipe.yaml", "SECURITY.md", "docs/installation.md", "docs/index.md")
CHANGELOG, CITATION, RECIPE, SECURITY, VERSIONS, INDEX = ((ROOT / name).read_text() for name in PAGES)


def field(text, name):
    """The value of a field of a YAML file, on its line."""
    return re.search(rf"^ *{re.escape(name)}: *\"?([^\n\"]*)\"?$", text, re.MULTILINE)[1]


def released():
    """The versions of the changelog with their dates, newest first."""
    headings = re.findall(r"^## (.*)", CHANGELOG, re.MULTILINE)
    rest = headings[1:] if headings[0] == "[Unreleased]" else headings
    found = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", heading) for heading in rest]
    assert all(found), "each version has a date: ## [1.2.3] - 2026-12-31"
    return [match.groups() for match in found]


def test_versions_stand_newest_first():
    order = [([*map(int, version.split("."))], date) for version, date in released()]
    assert order == sorted(order, reverse=True)
    assert [date for _, date in order] == sorted((date for _, date in order), reverse=True)


def test_changes_stand_under_the_headings_of_the_format():
    headings = re.findall(r"^### (.*)", CHANGELOG, re.MULTILINE)
    assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_one_version_everywhere():
    version, date = released()[0]
    assert PROJECT["dynamic"] == ["version"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "jaxtex/__init__.py"
    assert jaxtex.__version__ == version
    assert (field(CITATION, "version"), field(CITATION, "date-released")) == (version, date)
    assert field(RECIPE, "version") == version
    assert field(CITATION, "license") == field(RECIPE, "license") == PROJECT["license"]


def test_the_conda_recipe_needs_what_the_wheel_needs():
    host, run = re.search(r"^  host:\n(.*?)^  run:\n(.*?)^\n", RECIPE, re.MULTILINE | re.DOTALL).groups()
    of = lambda block: {re.sub(r" *- ", "", line).replace(" ", "") for line in block.splitlines()}
    python = f"python{PROJECT['requires-python']}"
    assert of(run) == {*PROJECT["dependencies"], python}
    assert of(host) == {*PYPROJECT["build-system"]["requires"], python, "pip"}
    entries = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert re.findall(r"entry_points:\n *- (.*)", RECIPE) == entries


def test_the_sdist_holds_what_belongs_to_a_release():
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"/CHANGELOG.md", "/CITATION.cff", "/SECURITY.md", "/conda", "/docs", "/examples", "/tests"} <= {*included}
    assert all((ROOT / path[1:]).exists() for path in included)


def test_the_pages_say_the_limits_that_hold():
    assert f"{MAX_PIXELS // 10**6} million" in SECURITY
    assert f"at most {MOST_BYTES // 2**20} MiB" in SECURITY
    assert f"at most {LARGEST_FILE // 2**20} MiB" in SECURITY


def test_the_page_on_versions_says_what_is_required():
    pythons = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", line)]
    oldest, above = re.search(r">=([\d.]+),<0\.(\d+)", PROJECT["dependencies"][0]).groups()
    assert f"| {pythons[0]} to {pythons[-1]} | {pythons[0]} | {pythons[-1]} |" in VERSIONS
    assert f"| {oldest} to 0.{int(above) - 1}.x | {oldest} | 0.{int(above) - 1} |" in VERSIONS
    assert f"NVRTC {'.'.join(map(str, LEAST_VERSION))} or newer" in VERSIONS
    assert f"`jax<0.{above}`" in VERSIONS
    major, minor = map(int, jaxtex.__version__.split(".")[:2])
    assert f"`jaxtex>={major}.{minor},<{major}.{minor + 1}`" in VERSIONS
    assert f"Version {major}.{minor}, a beta" in INDEX


def test_every_public_module_stands_on_the_page_on_versions():
    from tests.house.public_api import MODULES

    assert all(f"`jaxtex{module}`" in VERSIONS for module in MODULES)
