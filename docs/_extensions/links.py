"""Links that the pages and docstrings do not spell out: names in backticks, and files of the repository."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

PAGE = re.compile(r"docs/([\w/-]+)\.md")


class Name(SphinxRole):
    """The role of `` `name` `` in docstrings: a link where the name is known, code elsewhere."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        code = nodes.literal(self.rawtext, self.text, classes=["xref", "py"])
        page = PAGE.fullmatch(self.text)
        if page:
            node = addnodes.pending_xref(
                self.rawtext, code, refdomain="std", reftype="doc", reftarget=f"/{page[1]}", refexplicit=True
            )
        else:
            node = addnodes.pending_xref(self.rawtext, code, refdomain="py", reftype="obj", reftarget=self.text)
            node["may_be_unknown"] = True
            node["py:module"] = self.env.ref_context.get("py:module")
            node["py:class"] = self.env.ref_context.get("py:class")
        node["refdoc"] = self.env.docname
        self.set_source_info(node)
        return [node], []


def resolve(app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element) -> Any:
    """A name of the package without its prefix; a name that is unknown stays code."""
    if not node.get("may_be_unknown"):
        return None
    domain = env.domains.python_domain
    target = f"jaxtex.{node['reftarget']}"
    if target in domain.objects:
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)
    return content


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("name", Name())
    # After intersphinx.
    app.connect("missing-reference", resolve, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
