"""Files of compiled programs and kernels, for later processes."""

# pyright: strict

import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file atomically, and makes its folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = Path(folder, path.name)
        part.write_bytes(content)
        os.replace(part, path)


def cache_folder(environment: Mapping[str, str], system: str = sys.platform) -> Path | None:
    """The folder for what jaxtex keeps between processes; `None` if the user has no folder for such things."""
    home = environment.get("USERPROFILE" if system == "win32" else "HOME")
    if system == "win32":
        base = environment.get("LOCALAPPDATA")
    elif system == "darwin":
        base = f"{home}/Library/Caches" if home else None
    else:
        base = environment.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else None)
    return Path(base) / "jaxtex" if base and Path(base).is_absolute() else None


def usable(folder: Path) -> bool:
    """Makes a folder; whether it is there, is the user's, and can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK) and is_own(folder)


def is_own(folder: Path) -> bool:
    """Whether a folder is the user's, and not everybody may write to it: what is kept there is run as code."""
    if sys.platform == "win32":
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & stat.S_IWOTH


def delete_oldest(folder: Path, most_bytes: int, pattern: str = "*") -> None:
    """Deletes the files of a pattern until the rest take no more bytes. Another run may do so at the same time."""
    found: list[tuple[float, int, Path]] = []
    for path in folder.glob(pattern):
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most_bytes:
            return
        try:
            path.unlink()
        except OSError:
            continue
        total -= size
