"""The house rules that a program can check. Each list and table here is the one place of its rule."""

import ast
import contextlib
import doctest
import enum
import functools
import graphlib
import importlib
import inspect
import math
import re
import tomllib
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxtex
from jaxtex import Sampler
from jaxtex._jax.versions import SLOW_ATOMICS
from jaxtex.cli.jax_start import PACKAGES
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
    "_checks.words",
    "_checks.integers",
    "modes",
    "_tables",
    "_blocks",
    "_checks.texels",
    "sampler",
    "_checks.remedies",
    "_checks.calls",
    "_engine.describe.levels",
    "texture",
    "compressed",
    "_checks",
    "_engine.describe",
    "_engine.walk",
    "_engine.compute",
    "_engine.cuda.trace",
    "_engine.cuda.build",
    "_engine.cuda.samples",
    "_engine.cuda.read",
    "_engine.cuda.scatter",
    "_engine.cuda.gather",
    "_engine.cuda.filters",
    "_engine.cuda",
    "_engine.forms",
    "_engine.rules",
    "_engine.sharded",
    "_engine",
    "_checks.surfaces",
    "_hardware",
    "_reads",
    "sampling",
    "derivatives",
    "surface",
    "mipmaps",
    "splines",
    "exports",
    "sharded",
    "ndimage",
    "warp",
    "nn",
    "rays",
    "layers",
    "cuda",
    "__init__",
    "cli.process",
    "cli.values",
    "cli.options",
    "cli.help",
    "cli.commands",
    "cli.jax_start",
    "cli.files",
    "cli.transforms",
    "cli.lenses",
    "cli.calibration",
    "cli.recipe",
    "cli.pipeline",
    "cli.run",
    "cli",
    "__main__",
)

# Planning computes axes and operands; it must not know how, or whether, they are read.
PLANNING = ("_engine.describe.plan", "_engine.describe.footprint")
EXECUTION = ("_engine.cuda", "_engine.forms", "_engine.rules", "_engine.compute", "_engine.sharded")

SURFACE_REDUCTION = "(texture, values, coords, *, layer=None, face=None, level=0, boundary_mode='trap')"
MODES = "filter=None, address=None"
HOW = f"{MODES}, border_color=None, antialias=False, dtype=None"
OF_A_SHAPE = "output_shape=None, sampler=None"
OF_A_PANORAMA = "sampler=None, *, filter=None, antialias=False, dtype=None"
OF_FLOWS = "sampler=None, *, filter=None, address=None"
OF_A_LENS = f"(image, camera_matrix, distortion, {OF_A_SHAPE}, *, new_camera_matrix=None, "
OF_A_LENS += f"model='brown_conrady', {HOW})"
OF_POINTS = "(coords, camera_matrix, distortion, *, new_camera_matrix=None, model='brown_conrady')"
WARPS = {
    "SizedResize": f"(sampler=None, *, {MODES}, antialias=True, dtype=None)",
    "SizedWarp": f"(function, sampler=None, *, {HOW})",
    "affine_grid": "(theta, size, align_corners=False)",
    "camera_from_opencv": "(camera_matrix, distortion=None)",
    "compose_flows": f"(first, second, {OF_FLOWS})",
    "cubemap_to_equirectangular": f"(faces, output_shape, {OF_A_PANORAMA})",
    "distort": OF_A_LENS,
    "distort_points": OF_POINTS,
    "equirectangular_to_cubemap": f"(image, size, {OF_A_PANORAMA})",
    "flow_from_itk": "(field, geometry)",
    "forward_warp": f"(image, flow, importance=None, {OF_A_SHAPE}, *, {MODES}, mode='softmax', return_coverage=False, "
    "dtype=None)",
    "grid_sample": "(image, grid, mode=None, padding_mode=None, align_corners=False, *, data_format='NCHW', "
    "sampler=None, border_color=None, antialias=False, dtype=None)",
    "integrate_velocity": f"(velocity, steps=7, {OF_FLOWS})",
    "invert_flow": f"(flow, steps=20, {OF_FLOWS})",
    "jacobian_determinant": "(flow)",
    "matrix_from_itk": "(matrix, translation=0.0, center=0.0, *, input_geometry, output_geometry)",
    "matrix_from_nibabel": "(input_affine, output_affine, world_matrix=None)",
    "matrix_from_opencv": "(matrix)",
    "matrix_from_scipy": "(matrix, offset=None)",
    "matrix_from_skimage": "(matrix)",
    "matrix_from_torch": "(theta, input_shape, output_shape, align_corners=False)",
    "remap": f"(image, coords, sampler=None, *, {HOW})",
    "resample": f"(image, function, {OF_A_SHAPE}, *, {HOW}, parameters=None)",
    "resample_tiles": f"(image, function, {OF_A_SHAPE}, *, {MODES}, border_color=None, dtype=None, tile_shape=None, "
    "window_bytes=268435456)",
    "resize": f"(image, output_shape, sampler=None, *, {MODES}, border_color=None, antialias=True, dtype=None, "
    "edges='address')",
    "rotate": f"(image, degrees, {OF_A_SHAPE}, *, scale=1.0, center=None, {HOW})",
    "spatial_transform": f"(image, theta, {OF_A_SHAPE}, *, {HOW})",
    "thin_plate_spline": f"(image, source_points, target_points, {OF_A_SHAPE}, *, regularization=0.0, {HOW})",
    "undistort": OF_A_LENS,
    "undistort_points": OF_POINTS,
    "warp_affine": f"(image, matrix, {OF_A_SHAPE}, *, inverse_map=False, {HOW})",
    "warp_chain": f"(image, transforms, {OF_A_SHAPE}, *, flow_sampler=None, {HOW})",
    "warp_flow": f"(image, flow, sampler=None, *, {HOW})",
    "warp_labels": "(labels, transforms=None, output_shape=None, *, coords=None, method='nearest', flow_sampler=None, "
    "address=None, border_label=None)",
    "warp_perspective": f"(image, matrix, {OF_A_SHAPE}, *, inverse_map=False, {HOW})",
}
READS_INSIDE_MODELS = {
    "MultiresolutionGrid": "(*, ndim=3, num_levels=16, base_resolution=16, per_level_scale=None, "
    "finest_resolution=None, log2_hashmap_size=19, features_per_level=2, interpolation='linear')",
    "correlation_lookup": "(pyramid, coords, radius=4)",
    "correlation_pyramid": "(first, second, levels=4)",
    "deformable_attention": "(value, spatial_shapes, sampling_locations, attention_weights, *, mask=None)",
    "deformable_conv": "(x, offsets, kernel, *, mask=None, bias=None, strides=1, padding=0, dilation=1, groups=1, "
    "offset_groups=None)",
    "k_planes": "(planes, points)",
    "multiresolution_grid": "(tables, points, grid)",
    "multiresolution_grid_init": "(key, grid, dtype='float32')",
    "roi_align": "(features, boxes, output_size, *, batch_indices=None, spatial_scale=1.0, sampling_ratio=2, "
    "aligned=False, max_sampling_ratio=None)",
    "sample_weighted": "(textures, coords, weights, sampler=Sampler(), *, axis=-1, layer=None, lod=None, "
    "head=None, num_heads=1)",
    "triplane": "(planes, points, *, plane_axes=('xy', 'xz', 'zy'), reduce='mean')",
}
A_SCANNER = "volume_shape, angles, detector_shape, *"
RAYS = {
    "Rays": "(start, end)",
    "camera_rays": "(camera_matrix, pose, image_shape, *, near=0.0, far)",
    "composite": "(volume, start, end, *, num_samples=None, step=None, min_transmittance=0.0, spacing=1.0, "
    "sampler=Sampler())",
    "cone_beam": f"({A_SCANNER}, source_distance, detector_distance, pixel_size=1.0)",
    "first_crossing": "(volume, start, end, level, *, num_samples=None, step=None, outside=None, spacing=1.0, "
    "sampler=Sampler())",
    "line_integral": "(volume, start, end, *, num_samples=None, step=None, weights=None, spacing=1.0, "
    "sampler=Sampler())",
    "maximum_intensity": "(volume, start, end, *, num_samples=None, step=None, outside=None, sampler=Sampler())",
    "parallel_beam": f"({A_SCANNER}, pixel_size=1.0)",
}
OF_A_SPLINE = "output=None, order=3, mode='constant', cval=0.0, prefilter=True"
NDIMAGE = {
    "affine_transform": f"(input, matrix, offset=0.0, output_shape=None, {OF_A_SPLINE})",
    "geometric_transform": f"(input, mapping, output_shape=None, {OF_A_SPLINE}, extra_arguments=(), "
    "extra_keywords=None)",
    "map_coordinates": f"(input, coordinates, {OF_A_SPLINE})",
    "rotate": f"(input, angle, axes=(1, 0), reshape=True, {OF_A_SPLINE})",
    "shift": f"(input, shift, {OF_A_SPLINE})",
    "spline_filter": "(input, order=3, output=float64, mode='mirror')",
    "spline_filter1d": "(input, order=3, axis=-1, output=float64, mode='mirror')",
    "zoom": f"(input, zoom, {OF_A_SPLINE}, *, grid_mode=False)",
}
SIGNATURES = {
    "sample": "(texture, coords, sampler=Sampler(), *, layer=None, lod=None, ddx=None, ddy=None, ddz=None, "
    "key=None, dtype=None)",
    "sample_with_derivatives": "(texture, coords, sampler=Sampler(), *, order=1, layer=None, lod=None, ddx=None, "
    "ddy=None, ddz=None, dtype=None)",
    "fetch": "(texture, indices, *, layer=None, level=0)",
    "gather": "(texture, coords, sampler=Sampler(), *, component=0)",
    "positions": "(texture, coords, sampler=Sampler())",
    "splat": "(values, coords, shape, sampler=Sampler(), *, kind=None, layer=None, lod=None, ddx=None, "
    "ddy=None, ddz=None, dtype=None, out_sharding=None)",
    "surface_read": "(texture, coords, *, layer=None, face=None, level=0, boundary_mode='trap')",
    "surface_write": "(texture, values, coords, *, layer=None, face=None, level=0, boundary_mode='trap', "
    "unique_indices=False)",
    "surface_add": SURFACE_REDUCTION,
    "surface_min": SURFACE_REDUCTION,
    "surface_max": SURFACE_REDUCTION,
    "texture1d": "(texels, *, border_color=None, knots=None)",
    "texture2d": "(texels, *, border_color=None, knots=None)",
    "texture3d": "(texels, *, border_color=None, knots=None)",
    "texture1d_layered": "(texels, *, border_color=None, knots=None)",
    "texture2d_layered": "(texels, *, border_color=None, knots=None)",
    "cubemap": "(texels, *, border_color=None)",
    "cubemap_layered": "(texels, *, border_color=None)",
    "build_mipmaps": "(texture, num_levels=None)",
    "spline_filter": "(texture, sampler)",
    "block_compressed": "(blocks, format, shape, *, kind='2d', border_color=None)",
    "footprint": "(f, coords)",
    "kernels_in_exports": "(compute_capability=None)",
    "deterministic": "(enabled=True)",
    **{f"warp.{name}": signature for name, signature in WARPS.items()},
    **{f"nn.{name}": signature for name, signature in READS_INSIDE_MODELS.items()},
    **{f"rays.{name}": signature for name, signature in RAYS.items()},
    **{f"ndimage.{name}": signature for name, signature in NDIMAGE.items()},
    "Texture": "(texels, border_color=None, kind='2d', level_shapes=None, cut=None, knots=None)",
    "Sampler": "(*, address_mode=None, filter_mode=None, cubic_coefficient=-0.5, spline_order=3, "
    "read_mode='element', normalized_coords=True, srgb=False, mipmap_filter_mode='point', mipmap_level_bias=0.0, "
    "min_mipmap_level_clamp=0.0, max_mipmap_level_clamp=inf, max_anisotropy=1, seamless_cubemap=True, "
    "arithmetic='float', deterministic=None, limit=None)",
}

# What a docstring must say; a name in a group stands for the others.
FUNCTION_SECTIONS = (("Args",), ("Returns",), ("Gradients",), ("Raises",), ("Example",))
CLASS_SECTIONS = (("Args", "Attributes"), ("Example",))
ENUM_SECTIONS = ()

MAX_LINES = 400
# Modules that need a package which an installation may lack.
OPTIONAL = {"layers.nnx": "flax", "layers.equinox": "equinox"}


@functools.cache
def imports(module):
    """Each module that `module` imports, as (level of a relative import, dotted name in the package)."""
    package = SOURCES[module].parent.relative_to(PACKAGE).parts
    found = []
    for node in ast.walk(ast.parse(SOURCES[module].read_text())):
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


def layer(module):
    """The place of a module in LAYERS: its own, or that of the innermost room that has one."""
    rooms = (module.rsplit(".", depth)[0] for depth in range(module.count(".") + 1))
    found = next((room for room in rooms if room in LAYERS), None)
    assert found, f"give {module} a place in LAYERS"
    return LAYERS.index(found)


def is_enum(value):
    return inspect.isclass(value) and issubclass(value, enum.Enum)


# Layers


def test_imports_point_down():
    upward = [
        f"{module} imports {target}"
        for module in SOURCES
        for level, target in imports(module)
        if level and layer(target) > layer(module)
    ]
    assert not upward


def test_modules_of_the_command_line_have_a_room_and_a_name_of_their_own():
    modules = [module.split(".")[1:] for module in SOURCES if module.startswith("cli.")]
    assert {parts[0] for parts in modules if len(parts) == 1} <= {room.removeprefix("cli.") for room in LAYERS}
    names = [parts[-1] for parts in modules]
    assert len(names) == len(set(names))


def test_imports_have_no_cycle():
    graph = {module: {target for level, target in imports(module) if level} for module in SOURCES}
    tuple(graphlib.TopologicalSorter(graph).static_order())


def test_planning_reaches_no_lowering():
    graph = {module: {target for level, target in imports(module) if level} for module in SOURCES}
    for start in PLANNING:
        reached, front = set(), {start}
        while front:
            reached |= front
            front = set().union(*(graph[module] for module in front)) - reached
        assert not [module for module in reached if module.startswith(EXECUTION)], start


def test_package_never_imports_itself_by_name():
    named = [
        module
        for module in SOURCES
        for level, target in imports(module)
        if not level and target.split(".")[0] == "jaxtex"
    ]
    assert not named


def test_files_are_short():
    lines = {module: len(path.read_text().splitlines()) for module, path in SOURCES.items()}
    too_long = {module: count for module, count in lines.items() if count > MAX_LINES}
    assert not too_long, "a long file hides two ideas: look for the second name"


# Tolerances


TESTS = {path.name: path for path in sorted((ROOT / "tests").rglob("*.py")) if path.name != "tolerances.py"}


@functools.cache
def keywords_and_strings():
    """The keywords that each test file passes, with their lines, and the strings that it holds."""
    found = {}
    for name, path in TESTS.items():
        nodes = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.keyword, ast.Constant))
        ]
        keywords = [(node.arg, node.value.lineno) for node in nodes if isinstance(node, ast.keyword)]
        values = (node.value for node in nodes if isinstance(node, ast.Constant))
        found[name] = keywords, {value for value in values if isinstance(value, str)}
    return found


def test_tolerances_come_from_the_table():
    inline = [
        f"{name}:{line} passes {keyword}"
        for name, (keywords, _) in keywords_and_strings().items()
        for keyword, line in keywords
        if keyword in ("rtol", "atol")
    ]
    assert not inline, "give the bound a row and a reason in tests/support/tolerances.py, and call assert_close"


SMALL = 1e-3


def is_small(node):
    """Whether a bound holds a number of at most `SMALL`, or a negative power."""
    numbers = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, float)]
    powers = [n.right for n in ast.walk(node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow)]
    negative = any(isinstance(power, ast.UnaryOp) and isinstance(power.op, ast.USub) for power in powers)
    return negative or any(0 < number <= SMALL for number in numbers)


def upper_bounds(node):
    """The bounds from above that a comparison sets."""
    sides = [node.left, *node.comparators]
    for left, operation, right in zip(sides, node.ops, sides[1:]):
        if isinstance(operation, (ast.Lt, ast.LtE)):
            yield right
        if isinstance(operation, (ast.Gt, ast.GtE)):
            yield left


def test_small_bounds_come_from_the_table():
    inline = [
        f"{name}:{node.lineno} compares with {ast.unparse(bound)}"
        for name, path in TESTS.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        for bound in upper_bounds(node)
        if is_small(bound)
    ]
    assert not inline, "give the bound a row and a reason in tests/support/tolerances.py, and call assert_close"


@pytest.mark.parametrize(
    ("comparison", "small"),
    [
        ("error < 1e-5", True),
        ("error.max() <= 0.5 + 1e-3", True),
        ("0 < error <= 255 * 2.0**-17", True),
        ("1e-6 >= error", True),
        ("error < 0.4 * other", False),
        ("slope > 1e-3", False),
        ("2**20 > number", False),
    ],
)
def test_small_bounds_are_found(comparison, small):
    assert any(map(is_small, upper_bounds(ast.parse(comparison, mode="eval").body))) == small


def test_every_tolerance_is_used():
    used = set().union(*(strings for _, strings in keywords_and_strings().values()))
    assert not sorted(TOLERANCES.keys() - used), "a row that no test names has no use"


@pytest.mark.parametrize("module", sorted(SOURCES.keys() - {"__init__", "__main__"}))
def test_no_module_is_hidden_behind_another_name(module):
    """`package.name` is the module of that name, not a function that the package imports from it."""
    if module in OPTIONAL:
        pytest.importorskip(OPTIONAL[module])
    imported = importlib.import_module(f"jaxtex.{module}")
    *packages, name = module.split(".")
    package = importlib.import_module(".".join(("jaxtex", *packages)))
    assert getattr(package, name) is imported, f"{package.__name__} hides its module {name}: rename one of the two"


# Interface


PUBLIC = {name: getattr(jaxtex, name) for name in jaxtex.__all__}
PUBLIC |= {f"warp.{name}": getattr(jaxtex.warp, name) for name in jaxtex.warp.__all__}
PUBLIC |= {f"rays.{name}": getattr(jaxtex.rays, name) for name in jaxtex.rays.__all__}
PUBLIC |= {f"nn.{name}": getattr(jaxtex.nn, name) for name in jaxtex.nn.__all__}
PUBLIC |= {f"ndimage.{name}": getattr(jaxtex.ndimage, name) for name in jaxtex.ndimage.__all__}


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if not is_enum(value)])
def test_signature_is_as_agreed(name):
    assert name in SIGNATURES, "a new public name needs a row in SIGNATURES"
    scope = {"Sampler": Sampler, "inf": math.inf, "float64": np.float64}
    exec(f"def agreed{SIGNATURES[name]}: ...", scope)
    signature = inspect.signature(PUBLIC[name])
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    assert bare == list(inspect.signature(scope["agreed"]).parameters.values())


def test_every_agreed_name_is_public():
    assert SIGNATURES.keys() <= PUBLIC.keys()
    for names in (jaxtex.__all__, jaxtex.warp.__all__, jaxtex.rays.__all__, jaxtex.nn.__all__, jaxtex.ndimage.__all__):
        assert names == sorted(names)


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_is_a_contract(name):
    value = PUBLIC[name]
    needed = ENUM_SECTIONS if is_enum(value) else CLASS_SECTIONS if inspect.isclass(value) else FUNCTION_SECTIONS
    text = inspect.getdoc(value) or ""
    assert text.split("\n")[0].endswith("."), "the first line says in one sentence what it is"
    found = set(re.findall(r"^([A-Z]\w+):", text, re.MULTILINE))
    missing = [" or ".join(group) for group in needed if not found & set(group)]
    assert not missing
    if needed:
        assert ">>> " in text


@pytest.mark.parametrize("module", sorted(SOURCES.keys() - {"__init__", "__main__"}))
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


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
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


def test_the_pages_name_the_supported_versions():
    oldest_jax, first_unsupported = re.search(r">=([\d.]+),<0\.(\d+)", PROJECT["dependencies"][0]).groups()
    contributing, installation = ((ROOT / name).read_text() for name in ("CONTRIBUTING.md", "docs/installation.md"))
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}, JAX {oldest_jax} to 0.{int(first_unsupported) - 1}.x" in contributing
    rows = re.findall(r"^\| (3\.[\d., ]+) \|(.*)\|$", installation, re.MULTILINE)
    assert ", ".join(pythons for pythons, _ in rows).split(", ") == PYTHONS
    assert all(oldest_jax in row for _, row in rows)
    first, last = (".".join(map(str, release)) for release in SLOW_ATOMICS)
    assert f"jaxlib {first} to {last} compile a float32 scatter-add on CUDA to a loop" in installation


def test_the_sdist_holds_what_the_readme_links():
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    always = ("README.md", "LICENSE")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text())]
    local = [link for link in links if link and "//" not in link]
    assert local
    assert all((ROOT / link).exists() for link in local)
    assert {link.split("/")[0] for link in local} <= {*(path.split("/")[1] for path in included["include"]), *always}


def test_the_library_needs_jax_and_numpy_alone():
    assert [BOUND.match(line)[1] for line in PROJECT["dependencies"]] == ["jax", "jaxlib", "numpy"]


def test_the_extra_cli_holds_what_the_command_line_checks_for():
    assert {BOUND.match(line)[1] for line in EXTRAS["cli"]} == set(PACKAGES.values())
    for name in ("test", "examples", "bench"):
        assert any("cli" in match[1].split(",") for match in re.finditer(r"jaxtex\[([\w,]+)\]", " ".join(EXTRAS[name])))


def test_the_extra_explore_holds_what_its_example_imports():
    assert [BOUND.match(line)[1] for line in EXTRAS["explore"] if line != "jaxtex[cli]"] == ["panel"]
    assert "import panel" in (ROOT / "examples" / "explore.py").read_text()


def test_ci_runs_parts_that_are_documented_and_tests_that_exist():
    script = (ROOT / ".ci" / "run").read_text()
    parts = " ".join(re.findall(r"^(?:PARTS|NIGHTLY)=\((.*)\)$", script, re.MULTILINE)).split()
    assert re.findall(r"^\| `(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE) == parts
    assert set(parts) <= set(re.findall(r"^(\w+)\(\) \{$", script, re.MULTILINE))
    paths = re.findall(r"tests/[\w/]+(?:\.py)?\b", script)
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]
