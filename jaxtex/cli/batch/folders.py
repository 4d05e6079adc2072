"""Folders: the images in one, and those that are made for the output."""

# pyright: strict

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
        UserError: if there are none.
    """
    visible = visible_paths(folder, recursive)
    paths = [path for path in visible if path.suffix.lower() in FORMATS and not path.is_dir()]
    if not paths:
        raise UserError(f"{folder} holds no image file ({', '.join(FORMATS)})")
    return paths


def visible_paths(folder: Path, recursive: bool = False) -> list[Path]:
    """What a folder holds, by name, but for hidden files, which a pattern of the shell would not find either.

    Raises:
        UserError: if the folder cannot be read.
    """
    try:
        paths = sorted(folder.rglob("*") if recursive else folder.iterdir())
    except OSError as error:
        raise UserError(f"cannot read the folder {folder}: {error.strerror or error}") from error
    return [path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def print_left_out(folder: Path, recursive: bool = False) -> None:
    """Prints which images of a folder are of a kind that is not read."""
    visible = visible_paths(folder, recursive)
    names = [path.name for path in visible if path.suffix.lower() in OTHER_IMAGE_SUFFIXES and not path.is_dir()]
    if names:
        shown = ", ".join(names[:MAX_SHOWN]) + (", ..." if len(names) > MAX_SHOWN else "")
        print_error(f"jaxtex: note: {folder} holds {len(names)} files of other kinds, which are left out: {shown}")


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
