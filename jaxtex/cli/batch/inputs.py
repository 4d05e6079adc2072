"""Which files are read, and where each result goes."""

# pyright: strict

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import UserError
from ..grammar.option_groups import Options
from ..pictures.encode import FORMATS
from ..pictures.writing import STREAM, write_options
from .folders import image_paths, make_folder, print_left_out

JPEG = (".jpg", ".jpeg")
LOSSY = (*JPEG, ".webp")


class Files(NamedTuple):
    """What one run reads and writes.

    Attributes:
        targets: the file to write for each file to read.
        title: what the report calls them all; `None` for a single file.
    """

    targets: dict[Path, Path]
    title: str | None


def find_files(options: Options) -> Files:
    """The files that the arguments name, in the order of the arguments. Folders to write to are made.

    Raises:
        UserError: if there is nothing to read, or two results would be one file.
    """
    sources, target = options.sources, options.target
    if STREAM in sources and len(sources) > 1:
        raise UserError("- reads standard input and is given alone")
    if len(sources) == 1 and not os.path.isdir(sources[0]):
        path = single_target(sources[0], target, options)
        check_effects(path, options)
        return Files({sources[0]: path}, None)
    if options.preview and target != STREAM and (os.path.isdir(target) or not target.suffix):
        raise UserError(f"--preview writes one image, and {target} names a folder; name a file such as preview.png")
    if target == STREAM and not options.preview:
        raise UserError("- writes one file to standard output, and there are several inputs")
    if target.suffix.lower() in FORMATS and not os.path.isdir(target) and not options.preview:
        raise UserError(f"{target} names a file, and there are several inputs; name a folder")
    found = list(listed(sources, target, options))
    if options.preview:
        return Files({found[0][0]: single_target(found[0][0], target, options)}, None)
    for source in sources:
        if os.path.isdir(source):
            make_folder(target, source)
            if not options.quiet:
                print_left_out(source, options.recursive)
    targets: dict[Path, Path] = {}
    sources_of: dict[Path, Path] = {}
    for source, path in found:
        if (other := sources_of.setdefault(path, source)) != source:
            raise UserError(f"{other} and {source} would both be written to {path}")
        targets[source] = path
    for folder in dict.fromkeys(path.parent for path in targets.values()):
        make_parents(folder)
    return Files(targets, f"{', '.join(map(str, sources[:3]))}{', ...' if len(sources) > 3 else ''} -> {target}")


def single_target(source: Path, target: Path, options: Options) -> Path:
    """Where the result of the only file goes."""
    if target == STREAM:
        return target
    if os.path.isdir(target):
        if source == STREAM:
            raise UserError(f"{target} is a folder, and standard input has no name; name a file")
        return target / renamed(Path(source.name), options)
    if options.format is not None and target.suffix.lower() != f".{options.format}":
        raise UserError(f"--format {options.format} contradicts the name of {target}; it is for folders and -")
    return target


def check_effects(target: Path, options: Options) -> None:
    """Checks that the format of the only output has the options of JPEG and WebP.

    Raises:
        UserError: if an option has no effect.
    """
    suffix = write_options(options).named(target).suffix.lower()
    for name, value, suffixes in (("quality", options.quality, LOSSY), ("subsampling", options.subsampling, JPEG)):
        if value is not None and suffix in FORMATS and suffix not in suffixes:
            raise UserError(f"--{name} has no effect on {FORMATS[suffix]}")


def listed(sources: Iterable[Path], target: Path, options: Options) -> Iterator[tuple[Path, Path]]:
    """Each file to read, and the file to write for it."""
    for source in sources:
        if not os.path.isdir(source):
            yield source, target / renamed(Path(source.name), options)
            continue
        for path in image_paths(source, options.recursive):
            if not (options.recursive and is_within(path, target)):
                yield path, target / renamed(path.relative_to(source), options)


def is_within(path: Path, folder: Path) -> bool:
    """Whether a file lies in a folder, or below it."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def renamed(path: Path, options: Options) -> Path:
    """A name with the suffix of `--format`."""
    return path if options.format is None else path.with_suffix(f".{options.format}")


def make_parents(folder: Path) -> None:
    """Makes a folder to write to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror or error}") from error
