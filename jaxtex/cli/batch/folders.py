"""Folders: the images in one, and those that are made for the output."""

# pyright: strict

import os
from pathlib import Path

from ..errors import UserError
from ..pictures.encode import FORMATS
from ..pictures.kinds import OTHER_IMAGE_SUFFIXES
from ..process.messages import print_error

MAX_SHOWN = 5  # names in a message


def image_paths(folder: Path, recursive: bool = False) -> list[Path]:
    """The image files of a folder, by name, without hidden ones. Links that lead nowhere and pipes are among them.

    Args:
        folder: to read.
        recursive: whether those of its subfolders belong to it too.

    Raises:
        UserError: if there are none, or the folder cannot be read.
    """
    visible, unreadable = visible_paths(folder, recursive)
    if folder in unreadable:
        raise UserError(f"cannot read the folder {folder}: {unreadable[folder]}")
    paths = [path for path in visible if path.suffix.lower() in FORMATS]
    if not paths:
        raise UserError(f"{folder} holds no image file ({', '.join(FORMATS)})")
    return paths


def visible_paths(folder: Path, recursive: bool = False) -> tuple[list[Path], dict[Path, str]]:
    """What a folder holds, and which folders cannot be read, and why.

    Hidden files, which a pattern of the shell would not find either, and folders are not among its files.
    """
    paths: list[Path] = []
    unreadable: dict[Path, str] = {}

    def report(error: OSError) -> None:
        unreadable[Path(error.filename)] = error.strerror or str(error)

    for parent, folders, names in os.walk(folder, onerror=report):
        folders[:] = [name for name in folders if recursive and not name.startswith(".")]
        paths += [Path(parent, name) for name in names if not name.startswith(".")]
    return sorted(paths), unreadable


def print_left_out(folder: Path, recursive: bool = False) -> None:
    """Prints which images of a folder are of a kind that is not read, and which subfolders cannot be read."""
    visible, unreadable = visible_paths(folder, recursive)
    names = [path.name for path in visible if path.suffix.lower() in OTHER_IMAGE_SUFFIXES]
    if names:
        shown = ", ".join(names[:MAX_SHOWN]) + (", ..." if len(names) > MAX_SHOWN else "")
        print_error(f"jaxtex: note: {folder} holds {len(names)} files of other kinds, which are left out: {shown}")
    for path, reason in unreadable.items():
        print_error(f"jaxtex: note: the folder {path} cannot be read and is left out: {reason}")


def make_folder(target: Path, source: Path) -> None:
    """Makes the folder of the output if it does not exist.

    Raises:
        UserError: if it cannot be made, or is the folder of the input.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {target}: {error.strerror or error}") from error
    if target.samefile(source):
        raise UserError(f"{target} is also the input folder; name another folder for the output")
