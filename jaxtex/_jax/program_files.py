"""Files of compiled programs and kernels, for later processes."""

# pyright: strict

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file atomically, and makes its folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder, path.name)
        part.write_bytes(content)
        os.replace(part, path)
