"""The guides: their Python blocks run, and their lines have the values that comments behind them claim."""

import ast
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from test_house import default_promotion

DOCS = Path(__file__).parent.parent / "docs"
GUIDES = (
    "arithmetic",
    "conventions",
    "cubemaps-and-mipmaps",
    "image-warping",
    "ndimage",
    "porting-cuda",
    "reading",
    "reads-inside-models",
    "scaling",
    "surfaces",
    "volumes",
)
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
    """Runs a block; returns how many claims it makes."""
    lines, claims = block.splitlines(), 0
    for statement in ast.parse(block).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), "<page>", "exec"), scope)
            continue
        value = eval(compile(ast.Expression(statement.value), "<page>", "eval"), scope)
        _, _, comment = lines[statement.end_lineno - 1].partition("  # ")
        claim = claimed(comment)
        if claim is not None:
            assert_is(value, claim)
            claims += 1
    return claims


# A page exports kernels; a machine without NVRTC exports array operations and says so.
@pytest.mark.filterwarnings("ignore:jaxtex. GPU kernels cannot be compiled:UserWarning")
@pytest.mark.parametrize("name", GUIDES)
def test_python_blocks_run_and_show_what_they_claim(name):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{name}.md").read_text(), re.MULTILINE | re.DOTALL)
    scope = {}
    with default_promotion():
        assert sum(run(block, scope) for block in blocks)


def test_a_wrong_claim_is_found():
    for line in ("1 + 1  # 3", "'a'  # 'b'", "jnp.ones(2)  # (3,)", "jnp.ones(2)  # [1, 2]", "1 < 2  # False"):
        with pytest.raises(AssertionError):
            run(line, {"jnp": jax.numpy})


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_lead_somewhere(page):
    text = (DOCS / page).read_text()
    missing = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target, _, anchor = link.partition("#")
        if "//" in target:
            continue
        path = (DOCS / target).resolve() if target else DOCS / page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            missing.append(link)
    assert not missing


def anchors(path):
    """The names of a page's headings, as a viewer makes them."""
    headings = re.findall(
        r"^#+ (.*)", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
