"""Links that pages and docstrings do not spell out: names in backticks, types, and pages named as files."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

PAGE = re.compile(r"docs/([\w/-]+)\.md(?:#([\w-]+))?")
TYPES = "api/types"
# What `jt.` and other short prefixes stand for.
SHORT = (re.compile(r"^(jt|jaxtex)\."), "jaxtex.")


class Name(SphinxRole):
    """The role of `` `name` `` in docstrings: a link where the name is known, code elsewhere."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        page = PAGE.fullmatch(self.text)
        code = nodes.literal(self.rawtext, self.text, classes=["xref", "py"])
        node = reference(self, page[1] if page else self.text, code)
        if page:
            node |= {"refdomain": "std", "reftype": "doc", "reftarget": f"/{page[1]}", "refexplicit": True}
        return [as_xref(self, node, code)], []


class Annotation(SphinxRole):
    """The role of a type: each of its names is a link where it is known."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        result = nodes.literal(self.rawtext, "", classes=["annotation"])
        for word in re.split(r"([A-Za-z_][\w.]*(?![\w.'\"]))", self.text):
            if re.fullmatch(r"[A-Za-z_][\w.]*", word):
                content = nodes.inline(word, word.rpartition(".")[2])
                result += as_xref(self, reference(self, word, content), content)
            else:
                result += nodes.Text(word)
        return [result], []


def reference(role: SphinxRole, target: str, content: nodes.Element) -> dict[str, Any]:
    context = role.env.ref_context
    return {
        "refdomain": "py",
        "reftype": "obj",
        "reftarget": target,
        "may_be_unknown": True,
        "py:module": context.get("py:module"),
        "py:class": context.get("py:class"),
    }


def as_xref(role: SphinxRole, attributes: dict[str, Any], content: nodes.Element) -> addnodes.pending_xref:
    node = addnodes.pending_xref(role.rawtext, content, refdoc=role.env.docname, **attributes)
    role.set_source_info(node)
    return node


def resolve(app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element) -> Any:
    """A name of the package without its prefix, or of the page of types; a name that is unknown stays code."""
    if not node.get("may_be_unknown"):
        return None
    name = node["reftarget"]
    objects = env.domains.python_domain.objects
    found = next((full for full in (SHORT[0].sub(SHORT[1], name), f"jaxtex.{name}") if full in objects), None)
    if found:
        entry = objects[found]
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, found)
    if name in known_types(env):
        return make_refnode(app.builder, node["refdoc"], TYPES, "", content, name)
    return content


def known_types(env: BuildEnvironment) -> set[str]:
    """The names in the first column of the page of types."""
    return set(re.findall(r"^\| `(\w+)` \|", env.doc2path(TYPES).read_text(), re.MULTILINE))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("name", Name())
    app.add_role("annotation", Annotation())
    # After intersphinx.
    app.connect("missing-reference", resolve, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
