"""The menu of the site: the entries under their captions, and the pages below an entry. GitHub shows pages without it.

A page that stands here and does not exist, or exists and does not stand here, is a warning, and so an error.
"""

from typing import Any

from sphinx.application import Sphinx

MENU = {
    "Get started": (
        "installation",
        "tutorial",
        "start/transformer",
        "start/cuda",
        "start/photographs",
        "start/science",
    ),
    "Textures": ("reading", "cubemaps-and-mipmaps", "conventions", "surfaces", "kernels", "unit", "porting-cuda"),
    "Images and volumes": ("image-warping", "command-line", "volumes", "rays", "ndimage"),
    "Models and speed": ("spatial-transformers", "reads-inside-models", "scaling", "performance"),
    "Look up": ("examples", "cookbook", "from/index", "api/index", "help/index", "contributing/index"),
}
BELOW = {
    "porting-cuda": ("arithmetic",),
    "performance": ("benchmarks",),
    "from/index": ("from/pytorch", "from/opencv", "from/scipy", "from/nvdiffrast"),
    "contributing/index": (
        "contributing/architecture",
        "contributing/features",
        "contributing/quality",
        "contributing/credits",
        "contributing/changelog",
    ),
}


def add_menu(app: Sphinx, document: str, source: list[str]) -> None:
    groups = MENU if document == app.config.root_doc else {"": BELOW.get(document, ())}
    for caption, pages in groups.items():
        if pages:
            found = "\n".join(f"/{page}" for page in pages)
            option = f":caption: {caption}\n" if caption else ""
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n{option}\n{found}\n```\n"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", add_menu)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
