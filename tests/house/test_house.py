"""The house rules that a program can check. Each list and table here is the one place of its rule."""

import ast
import contextlib
import doctest
import functools
import graphlib
import importlib
import importlib.util
import re
import tomllib
from pathlib import Path

import jax
import pytest

import jaxtex
from jaxtex.cli.jax_start import MOST_BYTES, PACKAGES
from jaxtex.cli.lenses import LARGEST_FILE
from jaxtex.cli.options import MAX_PIXELS
from tests.support.tolerances import TOLERANCES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jaxtex"
SOURCES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# The rooms and modules, bottom to top. A module imports only what stands before it.
LAYERS = (
    "_jax",
    "_unit",
    "_checks",
    "modes",
    "_tables",
    "_blocks",
    "sampler",
    "_engine.describe.levels",
    "texture",
    "compressed",
)
LAYERS += ("_engine.describe", "_engine.walk", "_engine.compute", "_engine.cuda.trace", "_engine.cuda.build")
LAYERS += ("_engine.cuda.samples", "_engine.cuda.read", "_engine.cuda.scatter", "_engine.cuda.gather")
LAYERS += ("_engine.cuda.filters", "_engine.cuda.programs", "_engine.cuda", "_engine.forms", "_engine.rules")
LAYERS += ("_engine.sharded", "_engine", "_hardware", "_reads", "sampling", "derivatives")
LAYERS += ("surface", "mipmaps", "splines", "exports", "fused", "unit", "sharded", "ndimage", "warp")
LAYERS += ("nn", "rays", "layers")
CUDA = "enums declarations functions errors structs kinds names memory device_numbers descriptors surfaces textures ptx"
LAYERS += (*(f"cuda.{room}" for room in CUDA.split()), "cuda")
LAYERS += ("__init__", "cli.process", "cli.options", "cli.commands", "cli.jax_start", "cli.files", "cli.transforms")
LAYERS += ("cli.lenses", "cli.pipeline", "cli.run", "cli", "__main__")

# The rooms that import of the engine only what its interface, `_engine.api`, lists.
BY_THE_INTERFACE = ("ndimage", "warp", "nn", "rays", "layers")

# A file is as long as its idea; what makes a longer one than usual, and what none exceeds.
USUAL_LINES, MAX_LINES = 500, 900
LONG_FILES = {
    "texture": "what an array must be to be a texture is checked where the texture is made",
    "_engine.rules.primitives": "the primitives of a read are defined by one another, and the rules refer to each",
    "_engine.cuda.programs.channels": "what has channels is found and narrowed by one rule for each kind of equation",
    "_engine.cuda.scatter.window_source": "one class: the windows of the scatter kernel, its sizes and its functions",
    "cuda.memory.arrays": "an array, its mip levels, and the calls that make, free and query them",
    "cuda.memory.copies": "runs, rows and boxes are moved by one function of their parts",
    "cuda.surfaces": "surface objects, references, and the functions that access them",
    "cuda.textures.texture_objects": "what a texture object is made of is checked and turned into texels in one go",
    "cli.files.codecs": "formats are read and written by the same codecs, and what a codec leaves out is mended here",
}
# An import, also in a function.
IMPORT = re.compile(r"^ *(from [\w.]+ import (?:\([^)]*\)|.*)|import [\w., ]+)(?: *#.*)?$", re.MULTILINE)
# Modules that need a package which an installation may lack.
OPTIONAL = {"layers.nnx": "flax", "layers.equinox": "equinox"}


@functools.cache
def imports(module):
    """Each module that `module` imports, as (level of a relative import, dotted name in the package)."""
    package = SOURCES[module].parent.relative_to(PACKAGE).parts
    found = []
    for statement in IMPORT.findall(SOURCES[module].read_text()):
        (node,) = ast.parse(statement).body
        if isinstance(node, ast.Import):
            found += ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.append((0, node.module))
        elif isinstance(node, ast.ImportFrom):
            base = (*package[: len(package) - node.level + 1], *(node.module or "").split("."))
            base = tuple(filter(None, base))
            for alias in node.names:
                inner = ".".join((*base, alias.name))
                found.append((node.level, inner if inner in SOURCES else ".".join(base) or "__init__"))
    return found


@contextlib.contextmanager
def default_promotion():
    """Examples are run as a reader would run them, without the strict flags of the tests."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@functools.cache
def layer(module):
    """The place of a module in LAYERS: its own, or that of the innermost room that has one."""
    rooms = (module.rsplit(".", depth)[0] for depth in range(module.count(".") + 1))
    found = next((room for room in rooms if room in LAYERS), None)
    assert found, f"give {module} a place in LAYERS"
    return LAYERS.index(found)


# Layers


def test_imports_point_down_without_a_cycle_and_never_by_name():
    above = lambda module, level, target: level and layer(target) > layer(module)
    by_name = lambda level, target: not level and target.split(".")[0] == "jaxtex"
    found = [(module, *named) for module in SOURCES for named in imports(module)]
    assert not [each for each in found if above(*each) or by_name(*each[1:])]
    graph = {module: {target for level, target in imports(module) if level} for module in SOURCES}
    tuple(graphlib.TopologicalSorter(graph).static_order())


def test_rooms_enter_the_engine_by_its_door_which_says_a_sentence_of_each_name():
    rooms = [module for module in SOURCES if module.split(".")[0] in BY_THE_INTERFACE]
    entered = {target for module in rooms for _, target in imports(module) if target.split(".")[0] == "_engine"}
    assert entered == {"_engine.api"}, "what a room needs has a sentence in _engine/api.py, or belongs elsewhere"
    nodes = [ast.parse(text).body[0] for module in rooms for text in IMPORT.findall(SOURCES[module].read_text())]
    by_door = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "_engine.api"]
    taken = {alias.name for node in by_door for alias in node.names}
    interface = importlib.import_module("jaxtex._engine.api")
    assert set(re.findall(r"^- `(\w+)`: [^`].*\.$", interface.__doc__, re.MULTILINE)) == taken
    assert all(hasattr(interface, name) for name in taken)


def test_files_are_as_long_as_their_ideas():
    lines = {module: len(path.read_text().splitlines()) for module, path in SOURCES.items()}
    assert {module for module, count in lines.items() if count > USUAL_LINES} == LONG_FILES.keys(), "give the reason"
    assert max(lines.values()) <= MAX_LINES, "a file this long hides two ideas: look for the second name"


# Tolerances


def test_tolerances_come_from_the_table_and_each_is_used():
    paths = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path.name != "tolerances.py"]
    texts = {path.name: path.read_text() for path in paths}
    inline = [f"{name} passes {found}" for name, text in texts.items() for found in re.findall(r"\b[ar]tol=", text)]
    assert not inline, "give the bound a row and a reason in tests/support/tolerances.py, and call assert_close"
    unused = [row for row in TOLERANCES if not any(f'"{row}"' in text for text in texts.values())]
    assert not unused, "a row that no test names has no use"


def modules():
    """All modules by name, but those whose package is not installed."""
    for name in sorted(SOURCES.keys() - {"__init__", "__main__"}):
        if name not in OPTIONAL or importlib.util.find_spec(OPTIONAL[name]):
            yield name, importlib.import_module(f"jaxtex.{name}")


def test_no_module_is_hidden_behind_another_name():
    """`package.name` is the module of that name, not a function that the package imports from it."""
    for path, module in modules():
        *packages, name = path.split(".")
        package = importlib.import_module(".".join(("jaxtex", *packages)))
        assert getattr(package, name) is module, f"{package.__name__} hides its module {name}: rename one of the two"


# Interface


ROOMS = ("warp", "rays", "nn", "ndimage")
PUBLIC = {name: getattr(jaxtex, name) for name in jaxtex.__all__}
PUBLIC |= {f"{room}.{n}": getattr(getattr(jaxtex, room), n) for room in ROOMS for n in getattr(jaxtex, room).__all__}

# Modules whose examples take long to compile.
SLOW = {"warp.sized.warpers", "warp.points", "rays.projections", "texture", "sharded", *OPTIONAL}
SLOW |= {name for name in SOURCES if name.startswith("cuda") and name != "cuda.textures.texture_objects"}

WITH_EXAMPLES = [n for n in SOURCES if n not in ("__init__", "__main__") and ">>> " in SOURCES[n].read_text()]


@pytest.mark.parametrize("module", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in WITH_EXAMPLES])
def test_docstring_examples_run(module):
    if module in OPTIONAL:
        pytest.importorskip(OPTIONAL[module])
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    with default_promotion():
        assert doctest.testmod(importlib.import_module(f"jaxtex.{module}"), optionflags=options).failed == 0


def run_python_blocks(page):
    """Runs the blocks of a page one after the other, and returns the names that they leave."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    scope = {}
    with default_promotion():
        for block in blocks:
            exec(compile(block, page, "exec"), scope)
    return scope


def test_readme_python_blocks_run(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    run_python_blocks("README.md")


# Metadata


PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", line)]
BOUND = re.compile(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)(,<[\d.]+)?")


def test_bounds_agree():
    required = [BOUND.fullmatch(line) for line in PROJECT["dependencies"] + EXTRAS["cli"]]
    assert all(required), "every dependency has a lower bound that .ci/run can install"
    of_jax = {match[2] + match[3] for match in required if match[1] in ("jax", "jaxlib")}
    of_jax |= {match[2] + match[3] for match in map(BOUND.fullmatch, EXTRAS["cuda"])}
    assert len(of_jax) == 1, "jax, jaxlib and the cuda extra move together"
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_sdist_holds_what_the_readme_links():
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]
    always = ("README.md", "LICENSE")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text())]
    local = [link for link in links if link and "//" not in link]
    assert local
    assert all((ROOT / link).exists() for link in local)
    assert {link.split("/")[0] for link in local} <= {*(path.split("/")[1] for path in included["include"]), *always}


def test_the_extra_cli_holds_what_the_command_line_checks_for():
    assert {BOUND.match(line)[1] for line in EXTRAS["cli"]} == set(PACKAGES.values())
    for name in ("test", "examples", "bench"):
        assert any("cli" in match[1].split(",") for match in re.finditer(r"jaxtex\[([\w,]+)\]", " ".join(EXTRAS[name])))


def test_ci_runs_parts_that_are_documented_and_tests_that_exist():
    script = (ROOT / ".ci" / "run").read_text()
    parts = " ".join(re.findall(r"^(?:PARTS|NIGHTLY)=\((.*)\)$", script, re.MULTILINE)).split()
    assert re.findall(r"^\| `(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE) == parts
    assert set(parts) <= set(re.findall(r"^(\w+)\(\) \{$", script, re.MULTILINE))
    paths = re.findall(r"tests/[\w/]+(?:\.py)?\b", script)
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]


# A release: versions, dependencies and limits agree wherever they stand


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
