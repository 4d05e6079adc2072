"""Sphinx's settings of the documentation site; `python -m docs build` builds it."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_extensions")]
os.environ["PYTHONPATH"] = str(HERE.parent)  # for the kernel that runs the tutorial

import inventories

import jaxtex

project = "jaxtex"
author = "the jaxtex authors"
copyright = "the jaxtex authors. Apache-2.0"
version = release = jaxtex.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "docstrings",
    "reference",
    "cuda_names",
    "links",
    "repository",
    "navigation",
]
exclude_patterns = ["_build", "_extensions", "_inventories", "**/.*"]

# Markdown. tests/docs/test_docs.py runs the Python blocks of all pages. The build runs a page whose header says so.
nb_execution_mode = "off"
nb_execution_timeout = 600  # seconds for a cell, on a busy machine
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# Reference. Types stand in the text of each argument, so signatures are short.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
default_role = "name"
add_module_names = False
add_function_parentheses = False

intersphinx_mapping = inventories.mapping(HERE / "_inventories", HERE / "_build" / "inventories")

nitpicky = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "sphinx_book_theme"
html_title = "jaxtex"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_search_scorer = str(HERE / "_extensions" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_domain_indices = False
html_theme_options = {
    "logo": {
        "text": f"jaxtex {version}",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "alt_text": "jaxtex, the first page",
    },
    "navbar_persistent": [],
    "navbar_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "home_page_in_toc": False,
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "use_source_button": False,
    "use_issues_button": False,
    # The address of the repository goes here: "repository_url", and True for the button.
    "use_repository_button": False,
}
