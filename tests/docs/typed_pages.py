"""`python -m tests.docs.typed_pages FOLDER`: README.md and docs/start as modules, for checkers of types."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "start").glob("*.md")))
BLOCK = re.compile(r"^```python\n((?s:.*?))^```", re.MULTILINE)


def write(folder):
    """Writes a module for each page, with all its blocks in order."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (folder / f"{page.stem.lower()}_page.py").write_text("\n".join(BLOCK.findall(page.read_text())))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
