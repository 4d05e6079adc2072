"""Links that pages and docstrings do not spell out: names in backticks, types, and pages named as files.

Long names in code may break behind a dot, an underscore or a parenthesis, where they do not fit on a line.

In Markdown, code that is a public name of jaxtex, JAX or NumPy becomes a link: `` `sample` ``, `` `jt.warp.resize` ``,
`` `jax.jit` ``, with or without arguments behind it.
"""

import collections
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

PAGE = re.compile(r"docs/([\w/-]+)\.md(?:#([\w-]+))?")
TYPES = "api/types"
# What the guides' short names of modules stand for.
SHORT = {"jt": "jaxtex", "jnp": "jax.numpy", "np": "numpy", "cuda": "jaxtex.cuda"}
# Code that names something, perhaps in a call.
CALL = re.compile(r"([A-Za-z_][\w.]*)(\(.*\))?", re.DOTALL)
# Names without a module are those of any of these, if no two have the name, but not plain words;
MODULES = ("jaxtex", "jaxtex.warp", "jaxtex.rays", "jaxtex.nn", "jaxtex.ndimage", "jaxtex.layers", "jaxtex.sharded")
MODULES += ("jaxtex.unit",)
PLAIN = ("shift", "zoom")
# on these pages they are those of one module first.
MODULE_OF = {
    "ndimage": "jaxtex.ndimage",
    "from/scipy": "jaxtex.ndimage",
    "image-warping": "jaxtex.warp",
    "volumes": "jaxtex.warp",
    "porting-cuda": "jaxtex.cuda",
    "start/cuda": "jaxtex.cuda",
    "start/science": "jaxtex.ndimage",
    "api/cuda-names": "jaxtex.cuda",
    "api/cuda-absent": "jaxtex.cuda",
}
# Another library, whose names are no links to ours: "PyTorch's `affine_grid`", and the columns that are named for it.
OTHERS = r"\b(?:PyTorch|torchvision|kornia|SciPy|scikit-image|OpenCV|CUDA|nvdiffrast|JAX|NumPy|Pillow|ITK|SimpleITK)\b"
THEIRS = re.compile(rf"{OTHERS}['’]s\s+(?:own\s+)?$")
COLUMN_OF_THEIRS = re.compile(rf"^(?!.*jaxtex)(?!CUDA).*{OTHERS}")
AND_THEIRS = re.compile(r",?\s+(?:and|or)\s+|,\s+|/")


LONG_WORD = re.compile(r'(?<=<span class="pre">)[^<\s]{20,}(?=</span>)')


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
    found = next((full for full in (full_name(name), f"jaxtex.{name}") if full in objects), None)
    if found:
        entry = objects[found]
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, found)
    if name in known_types(env):
        return make_refnode(app.builder, node["refdoc"], TYPES, "", content, name)
    return content


def full_name(name: str) -> str:
    first, dot, rest = name.partition(".")
    return f"{SHORT.get(first, first)}{dot}{rest}"


class NamesInCode(SphinxPostTransform):
    """Links the names in the code of Markdown pages."""

    default_priority = 5  # before references are resolved

    def run(self, **kwargs: Any) -> None:
        for link in list(self.document.findall(addnodes.pending_xref)):
            named = not link["reftarget"].startswith(("jax.", "numpy."))
            if link.get("may_be_unknown") and named and is_of_others(link):
                link.replace_self(link.children)
        if self.env.docname.startswith("api/") and self.env.docname not in MODULE_OF:
            return
        public = public_names(self.env)
        for code in list(self.document.findall(nodes.literal)):
            named = CALL.fullmatch(code.astext())
            around = code.parent
            if (
                not named
                or code["classes"]
                or isinstance(around, nodes.reference | addnodes.pending_xref | nodes.title)
            ):
                continue
            name = full_name(named[1])
            target = name if name.startswith(("jax.", "numpy.")) else public.get(name)
            if target and not (target.startswith("jaxtex.") and is_of_others(code)):
                code["classes"] += ["xref", "py"]
                link = addnodes.pending_xref(
                    "", code.deepcopy(), refdoc=self.env.docname, refdomain="py", reftype="obj", reftarget=target
                )
                link["may_be_unknown"] = True
                code.replace_self(link)


def is_of_others(node: nodes.Node) -> bool:
    """Whether the text says that a name is one of another library."""
    before = node.parent.children[: node.parent.index(node)]
    text = before[-1].astext() if before and isinstance(before[-1], nodes.Text) else ""
    return bool(
        THEIRS.search(text)
        or (AND_THEIRS.fullmatch(text) and len(before) > 1 and is_of_others(before[-2]))
        or COLUMN_OF_THEIRS.search(heading_of_column(node))
    )


def heading_of_column(node: nodes.Node) -> str:
    """The heading of the column of a table in which a node stands; empty where it stands in none."""
    entry = enclosing(node, nodes.entry)
    table = enclosing(entry, nodes.table) if entry else None
    headings = (
        [entry.astext() for head in table.findall(nodes.thead) for entry in head.findall(nodes.entry)] if table else []
    )
    return headings[entry.parent.index(entry)] if entry and headings else ""


def enclosing(node: nodes.Node, kind: type[nodes.Node]) -> Any:
    while node is not None and not isinstance(node, kind):
        node = node.parent
    return node


def public_names(env: BuildEnvironment) -> dict[str, str]:
    """The names of the reference as the page of `env` may write them, each with its full name."""
    objects = env.domains.python_domain.objects
    full = [name for name in objects if name.startswith("jaxtex.") and objects[name].objtype != "module"]
    bare = [name for name in full if name.rpartition(".")[0] in MODULES and name.rpartition(".")[2] not in PLAIN]
    count = collections.Counter(name.rpartition(".")[2] for name in bare)
    names = {name.rpartition(".")[2]: name for name in bare if count[name.rpartition(".")[2]] == 1}
    here = MODULE_OF.get(env.docname, "jaxtex") + "."
    names |= {name.removeprefix(here): name for name in full if name.startswith(here)}
    return names | {name.removeprefix("jaxtex."): name for name in full} | {name: name for name in full}


def break_long_words(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        breakable = lambda word: re.sub(r"(?<=[._(,/\[])(?=\w)", "<wbr>", word[0])
        context["body"] = LONG_WORD.sub(breakable, context["body"])


def known_types(env: BuildEnvironment) -> set[str]:
    """The names in the first column of the page of types."""
    return set(re.findall(r"^\| `(\w+)` \|", env.doc2path(TYPES).read_text(), re.MULTILINE))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("name", Name())
    app.add_role("annotation", Annotation())
    app.add_post_transform(NamesInCode)
    app.connect("html-page-context", break_long_words)
    # After intersphinx.
    app.connect("missing-reference", resolve, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
