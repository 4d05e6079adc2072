"""The menu of the site: the pages under their captions. It is added to the first page, which GitHub shows without it.

A page that stands here and does not exist, or exists and does not stand here, is a warning, and so an error.
"""

from typing import Any

from sphinx.application import Sphinx

MENU = {
    "Get started": ("why", "installation", "tutorial", "start/transformer", "start/cuda", "start/photographs"),
    "Guides": (
        "reading",
        "cubemaps-and-mipmaps",
        "conventions",
        "image-warping",
        "cookbook",
        "command-line",
        "spatial-transformers",
        "reads-inside-models",
        "volumes",
        "rays",
        "ndimage",
        "surfaces",
        "arithmetic",
        "porting-cuda",
        "scaling",
        "performance",
    ),
    "Coming from": ("from/pytorch", "from/opencv", "from/scipy", "from/nvdiffrast"),
    "Examples and figures": ("examples", "benchmarks"),
    "Reference": ("api/index", "help/index", "versions", "changelog", "credits"),
    "Development": ("architecture", "quality", "contributing"),
}


def add_menu(app: Sphinx, document: str, source: list[str]) -> None:
    if document != app.config.root_doc:
        return
    for caption, pages in MENU.items():
        found = [page for page in pages if page in app.env.found_docs]
        source[0] += "\n\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(found) + "\n```\n"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", add_menu)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
