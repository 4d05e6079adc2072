"""Compiled programs that are kept from one run to the next, in the cache folder of the user."""

# pyright: strict

import os
import sys
from collections.abc import Mapping
from pathlib import Path

# JAX's own names: a folder of the user's, which JAX then uses, and whether there is a cache at all.
FOLDER, SWITCH = "JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"
OFF = ("n", "no", "f", "false", "off", "0")
# A program of any size is kept, however fast it was compiled.
KEEP_ALL = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
# Programs of more bytes in all are deleted, those first that were not used for longest.
MOST_BYTES = 256 * 2**20


def cache_folder(environment: Mapping[str, str], platform: str = sys.platform) -> Path | None:
    """Where the programs of the command line are kept; `None` if the user has no folder for it."""
    home = environment.get("USERPROFILE" if platform == "win32" else "HOME")
    if platform == "win32":
        base = environment.get("LOCALAPPDATA")
    elif platform == "darwin":
        base = f"{home}/Library/Caches" if home else None
    else:
        base = environment.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else None)
    return Path(base) / "jaxtex" if base and Path(base).is_absolute() else None


def keep_compilations() -> Path | None:
    """Has JAX, which is not imported yet, keep programs; returns their folder if it is ours, and can be written."""
    folder = cache_folder(os.environ)
    if FOLDER in os.environ or os.environ.get(SWITCH, "").lower() in OFF or folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    os.environ[FOLDER] = str(folder)
    for name, value in KEEP_ALL.items():
        os.environ.setdefault(name, value)
    return folder


def delete_oldest(folder: Path, most_bytes: int = MOST_BYTES) -> None:
    """Deletes programs until the rest take no more bytes. Another run may do so at the same time."""
    found: list[tuple[float, int, Path]] = []
    for path in folder.glob("*"):
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
