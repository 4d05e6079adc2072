"""The directive `names`: a table of public names of a module, and their reference below it."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Names(SphinxDirective):
    """``.. names:: jaxtex.warp``, and in its body the names, separated by white space."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        values = {name: getattr(module, name) for name in " ".join(self.content).split()}
        lines = [*summary(module.__name__, values)] if len(values) > 1 else []
        for name, value in values.items():
            lines += ["", *entry(f"{module.__name__}.{name}", value)]
        return self.parse_text_to_nodes("\n".join(lines))


def summary(module: str, values: dict[str, Any]) -> Iterator[str]:
    """A table of the names, each with the first line of its docstring."""
    yield from (".. list-table::", "   :class: names", "   :widths: auto", "")
    for name, value in values.items():
        yield f"   * - :py:obj:`~{module}.{name}`"
        yield f"     - {first_line(value)}"
    yield ""


def first_line(value: Any) -> str:
    own = inspect.isclass(value) or callable(value)
    return (inspect.getdoc(value) or "").split("\n")[0] if own else f"``{value!r}``"


def entry(name: str, value: Any) -> list[str]:
    if inspect.isclass(value):
        return [f".. autoclass:: {name}", "   :members:", "   :undoc-members:"]
    return [f".. autofunction:: {name}" if callable(value) else f".. autodata:: {name}"]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("names", Names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
