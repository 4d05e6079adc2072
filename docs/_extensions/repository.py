"""Files of the repository as pages of the site, and links to them.

A page of `COPIES` shows a file that stands elsewhere in the repository. Links to those files lead to the pages, and
links to Python files to pages with their source, below the pictures that they draw.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent.parent
COPIES = {
    "contributing/changelog": "CHANGELOG.md",
    "contributing/index": "CONTRIBUTING.md",
    "contributing/credits": "examples/data/README.md",
}
GALLERY = "examples"
PAGES = {path: f"docs/{page}.md" for page, path in COPIES.items()}
PAGES["README.md"] = "docs/index.md"
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)[^)\s]+(?=\))")
CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Puts a file in the place of a page that shows it, and makes links fit the site."""
    if page not in COPIES and "../" not in source[0]:
        return
    folder, text = posixpath.dirname(f"docs/{page}"), source[0]
    if page in COPIES:
        folder, text = posixpath.dirname(COPIES[page]), (ROOT / COPIES[page]).read_text()
        app.env.note_dependency(str(ROOT / COPIES[page]))
    parts = CODE.split(text)
    parts[::2] = [LINK.sub(lambda link: relinked(link[0], folder, page), part) for part in parts[::2]]
    source[0] = "".join(parts)


def relinked(link: str, folder: str, page: str) -> str:
    path, mark, anchor = link.partition("#")
    path = posixpath.normpath(posixpath.join(folder, path))
    return posixpath.relpath(PAGES.get(path, path), posixpath.dirname(f"docs/{page}")) + mark + anchor


def sources(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each Python file that some page links."""
    highlighter = app.builder.highlighter  # type: ignore[attr-defined]
    for path in sorted(linked(app)):
        code = highlighter.highlight_block((ROOT / path).read_text(), "python")
        heading = path.replace("/", "/<wbr>")
        body = f"<h1>{heading}</h1>{''.join(pictures(app, path))}{code}"
        yield page_of(path), {"title": path, "body": body, "parents": [], "toc": ""}, "page.html"


def pictures(app: Sphinx, path: str) -> Iterator[str]:
    """The pictures that an example draws; an animation is a link, so that nothing moves before it is asked for."""
    if not path.startswith("examples/"):
        return
    name = Path(path).stem
    for picture in sorted((ROOT / "docs" / "images").glob(f"{name}.*")):
        # Sphinx may have given the name of the file to another one.
        address = f"../../_images/{app.builder.images.setdefault(f'images/{picture.name}', f'whole-{picture.name}')}"
        moves = picture.suffix == ".webp"
        yield (
            f'<p><a href="{address}">Animation</a></p>'
            if moves
            else f'<p><img alt="What {name}.py draws" src="{address}"></p>'
        )


def linked(app: Sphinx) -> set[str]:
    if not hasattr(app.env, "jaxtex_sources"):
        app.env.jaxtex_sources = {}  # type: ignore[attr-defined]
    return set().union(*app.env.jaxtex_sources.values())  # type: ignore[attr-defined]


def page_of(path: str) -> str:
    return f"source/{path.removesuffix('.py')}"


def find_sources(app: Sphinx, doctree: nodes.document) -> None:
    """Turns downloads of Python files into links to their pages."""
    linked(app)
    page, found = app.env.docname, set()
    for node in list(doctree.findall(addnodes.download_reference)):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), node["reftarget"]))
        if path.endswith(".py"):
            found.add(path)
            link = nodes.reference("", "", *node.children, internal=True)
            link["refuri"] = app.builder.get_relative_uri(page, page_of(path))
            node.replace_self(link)
    app.env.jaxtex_sources[page] = found  # type: ignore[attr-defined]
    for table in doctree.findall(nodes.table) if page == GALLERY else ():
        table["classes"].append("gallery")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", read)
    # Before the files to download are collected.
    app.connect("doctree-read", find_sources, priority=100)
    app.connect("html-collect-pages", sources)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
