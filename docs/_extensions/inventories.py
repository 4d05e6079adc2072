"""The names of other projects that this site links to, from text files instead of the network.

A file of `docs/_inventories` is the inventory of a project in Sphinx's format, version 2, but not compressed. Its first
line is a comment with the address of the project's site. A name that no file has is shown as code, not as a link.

To renew a file, or to add names, take their lines from the project's own inventory, where there is a network:
``python -m sphinx.ext.intersphinx https://docs.jax.dev/en/latest/objects.inv`` lists them. Afterwards
``python -m docs linkcheck`` follows the links.
"""

import zlib
from pathlib import Path

HEADER_LINES = 4


def mapping(texts: Path, compressed: Path) -> dict[str, tuple[str, str]]:
    """Compresses all inventories, and returns what `intersphinx_mapping` needs."""
    compressed.mkdir(parents=True, exist_ok=True)
    found = {}
    for path in sorted(texts.glob("*.txt")):
        address, *lines = path.read_text().splitlines(keepends=True)
        header, names = "".join(lines[:HEADER_LINES]), "".join(lines[HEADER_LINES:])
        inventory = compressed / f"{path.stem}.inv"
        inventory.write_bytes(header.encode() + zlib.compress(names.encode()))
        found[path.stem] = (address.removeprefix("#").strip(), str(inventory))
    return found
