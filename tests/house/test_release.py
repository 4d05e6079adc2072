"""What a release says about itself: versions, dependencies and limits agree wherever they stand."""

import re
import tomllib
from pathlib import Path

import jaxtex
from jaxtex.cli.calibration import LARGEST_FILE
from jaxtex.cli.jax_start import MOST_BYTES
from jaxtex.cli.options import MAX_PIXELS

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
PAGES = ("CHANGELOG.md", "CITATION.cff", "conda/recipe.yaml", "SECURITY.md")
CHANGELOG, CITATION, RECIPE, SECURITY = ((ROOT / name).read_text() for name in PAGES)


def field(text, name):
    """The value of a field of a YAML file, on its line."""
    return re.search(rf"^ *{re.escape(name)}: *\"?([^\n\"]*)\"?$", text, re.MULTILINE)[1]


def test_one_version_everywhere():
    version, date = re.search(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", CHANGELOG, re.MULTILINE).groups()
    assert jaxtex.__version__ == field(RECIPE, "version") == version
    assert (field(CITATION, "version"), field(CITATION, "date-released")) == (version, date)
    assert field(CITATION, "license") == field(RECIPE, "license") == PROJECT["license"]


def test_the_conda_recipe_needs_what_the_wheel_needs():
    host, run = re.search(r"^  host:\n(.*?)^  run:\n(.*?)^\n", RECIPE, re.MULTILINE | re.DOTALL).groups()
    of = lambda block: {re.sub(r" *- ", "", line).replace(" ", "") for line in block.splitlines()}
    python = f"python{PROJECT['requires-python']}"
    assert of(run) == {*PROJECT["dependencies"], python}
    assert of(host) == {*PYPROJECT["build-system"]["requires"], python, "pip"}
    entries = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert re.findall(r"entry_points:\n *- (.*)", RECIPE) == entries


def test_the_page_on_security_says_the_limits_that_hold():
    assert f"{MAX_PIXELS // 10**6} million" in SECURITY
    assert f"at most {MOST_BYTES // 2**20} MiB" in SECURITY
    assert f"at most {LARGEST_FILE // 2**20} MiB" in SECURITY
