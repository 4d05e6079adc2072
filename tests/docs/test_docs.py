"""The pages: their Python blocks run, and their lines have the values that comments behind them claim.

A block that cannot run here stands below a comment that says why: ``<!-- not run: needs a calibration -->``. One
that needs a package runs where it is installed.
"""

import ast
import contextlib
import functools
import importlib.util
import io
import re
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.house.test_house import default_promotion

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
PAGES = {name: path for name, path in PAGES.items() if not name.startswith("_")}
# Pages whose blocks another test runs, because it looks at what they leave.
ELSEWHERE = {"spatial-transformers": "unit/layers/test_layers.py"}
# Pages that train, and those with many blocks.
SLOW = "cookbook cubemaps-and-mipmaps image-warping kernels ndimage performance porting-cuda rays reading "
SLOW += "reads-inside-models scaling start/cuda start/transformer surfaces tutorial volumes"
# Pages that must show values, not only code.
GUIDES = ("arithmetic", "cookbook", "conventions", "cubemaps-and-mipmaps", "image-warping", "kernels", "ndimage")
GUIDES += ("porting-cuda", "reading", "reads-inside-models", "scaling", "surfaces", "tutorial", "volumes")
# The packages that blocks need, by the reason of their mark.
NEEDED = {"needs OpenCV": "cv2"}
MARK = r"<!-- not run: (?P<reason>.*?) -->\n+"
FENCE = r"```(?:python|\{code-cell\} ipython3)"
BLOCK = re.compile(rf"^(?:{MARK})?{FENCE}(?P<more>.*)\n(?P<code>(?s:.*?))^```", re.MULTILINE)
# Pages whose lines that print stand above what they print, and how many such lines there are at least.
PRINTED = {"porting-cuda": 4, "surfaces": 2, "help/errors": 20}
# Values are printed on the pages with up to three digits behind the point.
DIGITS = 3


def claimed(comment):
    """The literal at the start of a comment, up to a colon; `None` where there is none."""
    try:
        return ast.literal_eval(comment.split(":")[0].strip())
    except (SyntaxError, ValueError):
        return None


def assert_is(value, claim):
    """A tuple behind an array is its shape, all other literals are the value."""
    if isinstance(claim, tuple) and isinstance(value, jax.Array):
        assert value.shape == claim
    elif isinstance(claim, str):
        assert value == claim
    else:
        shown = np.round(np.asarray(value, np.float64), DIGITS)
        np.testing.assert_array_equal(shown, np.asarray(claim, np.float64))


def run(block, scope):
    """Runs a block; returns how many claims it makes. What it prints is printed."""
    lines, claims = block.splitlines(), 0
    for statement in ast.parse(block).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), "<page>", "exec"), scope)
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = eval(compile(ast.Expression(statement.value), "<page>", "eval"), scope)
        sys.stdout.write(printed.getvalue())
        _, _, comment = lines[statement.end_lineno - 1].partition("  # ")
        if comment and ast.unparse(statement).startswith("print("):
            assert printed.getvalue().strip() == comment.strip()
            claims += 1
            continue
        claim = claimed(comment)
        if claim is not None:
            assert_is(value, claim)
            claims += 1
    return claims


WITH_BLOCKS = [name for name in PAGES if BLOCK.search(PAGES[name].read_text())]
SLOW_MARK = {name: [pytest.mark.slow] for name in SLOW.split()}
RUN = [pytest.param(name, marks=SLOW_MARK.get(name, [])) for name in WITH_BLOCKS if name not in ELSEWHERE]


def test_blocks_that_other_tests_run_are_named_there():
    for name, file in ELSEWHERE.items():
        assert name in WITH_BLOCKS
        assert f'"docs/{name}.md"' in (Path(__file__).parents[1] / file).read_text()


# A page exports kernels; a machine without NVRTC exports array operations and says so.
@pytest.mark.filterwarnings("ignore:jaxtex. GPU kernels cannot be compiled:UserWarning")
@pytest.mark.parametrize("name", RUN)
def test_python_blocks_run_and_show_what_they_claim(name, tmp_path, monkeypatch, capsys):
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.chdir(tmp_path)
    scope = {}
    with default_promotion():
        claims = sum(run(block["code"], scope) for block in blocks_of(name) if can_run(block["reason"]))
    assert claims or name not in GUIDES
    if name in PRINTED:
        assert_said(capsys.readouterr().out, PAGES[name].read_text(), PRINTED[name])


def can_run(reason):
    return not reason or (reason in NEEDED and importlib.util.find_spec(NEEDED[reason]) is not None)


def assert_said(printed, page, least):
    """All that the blocks of a page print stands in its comments."""
    printed = [line.split() for line in printed.splitlines()]
    said = [line.split() for line in re.findall(r"^(?:print.*  )?# (.*)$", page, re.MULTILINE)]
    assert [line for line in printed if line not in said] == []
    assert len(printed) >= least


def blocks_of(name):
    return list(BLOCK.finditer(PAGES[name].read_text()))


def test_marks_stand_above_a_block_and_give_a_reason():
    for name, page in PAGES.items():
        text, blocks = page.read_text(), blocks_of(name)
        assert len(blocks) == len(re.findall(r"^ *(?:```|~~~) *\{?(?:py|code-cell)", text, re.MULTILINE)), (
            f"{name} has a fence of another form"
        )
        assert not [block["more"] for block in blocks if block["more"]], f"{name} has a fence with attributes"
        # Shell commands may have a mark too.
        marks = re.findall(rf"^{MARK}```(?:python|sh)$", text, re.MULTILINE)
        assert len(marks) == len(re.findall(r"not run\b.*-->", text)), name
        assert all(len(reason.split()) > 1 for reason in marks), name


OTHERS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")


def test_links_lead_somewhere():
    missing = []
    for page in (*(DOCS.parent / name for name in OTHERS), *PAGES.values()):
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
            target, _, anchor = link.partition("#")
            if "//" in target or target.startswith("mailto:"):
                continue
            path = (page.parent / target).resolve() if target else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                missing.append((page.name, link))
    assert not missing


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


@functools.cache
def anchors(path):
    """The names of a page's headings, as a viewer makes them."""
    headings = re.findall(r"^#+ (.*)", without_code(path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
