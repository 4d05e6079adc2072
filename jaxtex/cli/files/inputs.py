"""Which files are read, where each result goes, and which kinds of files are refused."""

import contextlib
import importlib.util
import io
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from ...warp.sized.mappings import Size
from ..options import COMPRESSIONS, Options, filled
from ..process import OutputError, UserError, describe, did_you_mean, one_line, print_error

# Stands for standard input and standard output.
STREAM = Path("-")
FORMATS = {
    **{".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF", ".webp": "WebP"},
    **{".gif": "GIF", ".apng": "PNG", ".heic": "HEIF", ".heif": "HEIF"},
}
FORMAT_OF_STREAM = "png"
HEAD_BYTES = 32
# Camera raw files, by the first bytes; where they begin, the bytes, the kind.
RAW_SIGNATURES = (
    (0, b"FUJIFILMCCD-RAW", "RAF"),
    (0, b"IIRO", "ORF"),
    (0, b"IIRS", "ORF"),
    (0, b"MMOR", "ORF"),
    (0, b"IIU\0", "RW2"),
    (0, b"FOVb", "X3F"),
    (0, b"\0MRM", "MRW"),
    (4, b"ftypcrx ", "CR3"),
    (6, b"HEAPCCDR", "CRW"),
    (8, b"CR\2", "CR2"),
    (8, b"IIII", "IIQ"),
)
RAW_NAMES = "3fr arw cr2 cr3 crw dcr dng erf fff iiq kdc mef mos mrw nef nrw orf pef raf raw rw2 rwl sr2 srf srw x3f"
RAW_SUFFIXES = frozenset(f".{name}" for name in RAW_NAMES.split())
HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
# Images that `jaxtex warp` does not take from a folder, but that a user may miss.
OTHER_NAMES = f"{RAW_NAMES} avif bmp exr hdr heic heif jfif jp2 jpe jxl pnm ppm psd tga"
OTHER_IMAGE_SUFFIXES = frozenset(f".{name}" for name in OTHER_NAMES.split())
MAX_SHOWN = 5  # names in a message
# The width and the height of the file that is written for an input.
SizeOfFile = Callable[[Path], Size]


class Page(NamedTuple):
    """A page of a TIFF, or a frame of an animation.

    Attributes:
        directory: where its tags are stored; of a frame, its number from 0.
        size: width and height of the upright picture.
        texel_bytes: the most bytes that one of its pixels takes in the output.
    """

    directory: int
    size: Size
    texel_bytes: int


class Animation(NamedTuple):
    """What an animation says beside its frames.

    Attributes:
        plays: how often they are shown; 0 for ever.
        has_poster: whether the first one is no part of the animation, but for readers that show one picture.
    """

    plays: int
    has_poster: bool = False


class PictureFile(NamedTuple):
    """A picture in a file.

    Attributes:
        path: of the file, or - for standard input.
        data: what standard input held; `None` for a file.
        pages: of a TIFF, or frames of an animation, that are warped; none where they are still to be found, and for
            other files.
        position: of the page among `pages`, from 0.
        frame: which one of an animation, from 1; `None` if the file must have one.
        notes: what else the file has, as the ends of sentences.
        animation: of which all frames are warped; `None` for other files.
    """

    path: Path
    data: bytes | None = None
    pages: tuple[Page, ...] = ()
    position: int = 0
    frame: int | None = None
    notes: tuple[str, ...] = ()
    animation: Animation | None = None

    def __str__(self) -> str:
        return f"{self.path} ({self.part} {self.position + 1})" if len(self.pages) > 1 else str(self.path)

    @property
    def part(self) -> str:
        """What one of several pictures is called."""
        return "frame" if self.animation else "page"

    def open(self) -> io.BufferedIOBase:
        """Opens the file, and waits for no pipe and no device; see `open_regular`."""
        if self.data is not None:
            return io.BytesIO(self.data)
        return cast(io.BufferedReader, open_regular(self.path))


# What the arguments name


def find_files(options: Options, size_of_file: SizeOfFile) -> tuple[dict[Path, Path], str | None]:
    """The file to write for each file to read, in the order of the arguments, and what the report calls them all.

    A single file has no title. Folders to write to are made.

    Args:
        size_of_file: the width and the height of the file that is written for an input.
    """
    sources, target = options.sources, options.target
    if STREAM in sources and len(sources) > 1:
        raise UserError("- reads standard input, and must be the only input")
    if len(sources) == 1 and not os.path.isdir(sources[0]):
        path = single_target(sources[0], target, options, size_of_file)
        check_effects(path, options)
        check_overwritten(sources, [path], options)
        if path != target:  # whose name the user gave
            check_is_new([path], options)
        return {sources[0]: path}, None
    if options.preview and target != STREAM and (os.path.isdir(target) or not target.suffix):
        raise UserError(f"--preview writes one image, and {target} names a folder; name a file such as preview.png")
    if target == STREAM and not options.preview:
        raise UserError("- writes one file to standard output, and there are several inputs")
    if target.suffix.lower() in FORMATS and not os.path.isdir(target) and not options.preview:
        raise UserError(f"{target} names a file, and there are several inputs; name a folder")
    found = list(listed(sources, target, options, size_of_file))
    if options.preview:
        path = single_target(found[0][0], target, options, size_of_file)
        check_overwritten([source for source, _ in found], [path], options)
        return {found[0][0]: path}, None
    targets: dict[Path, Path] = {}
    sources_of: dict[Path, Path] = {}
    for source, path in found:
        if (other := sources_of.setdefault(path, source)) != source:
            remedy = (
                "add {number} to --name" if options.name else "write them to two folders, in two runs, or add --name"
            )
            raise UserError(f"{other} and {source} would both be written to {path}; {remedy}")
        targets[source] = path
    check_overwritten(targets, targets.values(), options)
    check_is_new(targets.values(), options)
    for folder in filter(os.path.isdir, sources):
        make_folder(target)
        if target.samefile(folder) and not options.overwrite:
            raise UserError(f"{target} is also the input folder; name another folder for the output")
        if not options.quiet:
            print_left_out(folder, options.recursive)
    for folder in dict.fromkeys(path.parent for path in targets.values()):
        make_folder(folder)
    return targets, f"{', '.join(map(str, sources[:3]))}{', ...' if len(sources) > 3 else ''} -> {target}"


def check_overwritten(sources: Iterable[Path], targets: Iterable[Path], options: Options) -> None:
    """Checks that no output is an input."""
    if options.overwrite:
        return
    inputs = {os.path.realpath(source) for source in sources if source != STREAM}
    for target in targets:
        if target != STREAM and os.path.realpath(target) in inputs:
            raise UserError(f"{target} is also an input, which it would replace; name another, or add --overwrite")


def check_is_new(targets: Iterable[Path], options: Options) -> None:
    """Checks that no output exists whose name the user did not give: it may be of another folder of inputs."""
    if options.overwrite or options.skip_existing:
        return
    found = [target for target in targets if os.path.lexists(target) and target != STREAM]
    if found:
        others = f" and {len(found) - 1} other outputs exist" if len(found) > 1 else " exists"
        raise UserError(
            f"{found[0]}{others} already; name another folder, or add --overwrite to replace what is there, or "
            "--skip-existing to keep it"
        )


def single_target(source: Path, target: Path, options: Options, size_of_file: SizeOfFile) -> Path:
    """Where the result of the only file goes."""
    if target == STREAM:
        return target
    if os.path.isdir(target):
        if source == STREAM:
            raise UserError(f"{target} is a folder, and standard input has no name; name a file")
        return target / renamed(source, Path(source.name), 1, options, size_of_file)
    if options.name is not None:
        raise UserError(f"--name is for files in a folder, and {target} is none; leave --name out, or make the folder")
    if options.format is not None and target.suffix.lower() != f".{options.format}":
        raise UserError(f"--format {options.format} contradicts the name of {target}; it is for folders and -")
    return target


def format_of(target: Path, options: Options) -> str:
    """The format of an output: what its suffix stands for, or `--format` on standard output."""
    suffix = f".{options.format or FORMAT_OF_STREAM}" if target == STREAM else target.suffix
    try:
        file_format = FORMATS[suffix.lower()]
        if file_format == "HEIF":
            register_heif()
        return file_format
    except UserError as error:
        raise UserError(f"cannot write {target}: {error}") from None
    except KeyError:
        stated = f"the suffix {suffix!r}" if suffix else "no suffix"
        stated += f", expected one of {', '.join(FORMATS)}"
        stated += did_you_mean(suffix, FORMATS) if suffix else "; if it is to be a folder, make it first"
        raise UserError(f"cannot write {target}: it has {stated}") from None


def check_effects(target: Path, options: Options) -> None:
    """Checks that the format of the only output has the options of JPEG and WebP."""
    if target != STREAM and target.suffix.lower() not in FORMATS:
        return
    file_format = format_of(target, options)
    for name, value, formats in (
        ("quality", options.quality, ("JPEG", "WebP", "HEIF")),
        ("subsampling", options.subsampling, ("JPEG", "HEIF")),
    ):
        if value is not None and file_format not in formats:
            raise UserError(f"--{name} has no effect on {file_format}")
    if options.compression is not None and options.compression not in (words := COMPRESSIONS[file_format]):
        remedy = f", which takes {', '.join(words)}" if words else ""
        remedy = ", which takes --quality and --subsampling" if file_format in ("JPEG", "HEIF") else remedy
        raise UserError(f"--compression {options.compression} has no effect on {file_format}{remedy}")


def listed(
    sources: Iterable[Path], target: Path, options: Options, size_of_file: SizeOfFile
) -> Iterator[tuple[Path, Path]]:
    """Each file to read, and the file to write for it."""
    found: list[tuple[Path, Path]] = []
    for source in sources:
        if not os.path.isdir(source):
            found.append((source, Path(source.name)))
            continue
        paths = image_paths(source, options.recursive)
        inner = (path for path in paths if not (options.recursive and is_within(path, target)))
        found += ((path, path.relative_to(source)) for path in inner)
    for number, (path, name) in enumerate(found, 1):
        yield path, target / renamed(path, name, number, options, size_of_file)


def is_within(path: Path, folder: Path) -> bool:
    """Whether a file lies in a folder, or below it."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def renamed(source: Path, path: Path, number: int, options: Options, size_of_file: SizeOfFile) -> Path:
    """The path of an output in its folder: with the suffix of `--format`, and the name that `--name` says.

    Args:
        source: the input.
        path: of the input in its folder.
        number: of the input, from 1.
    """
    path = path if options.format is None else path.with_suffix(f".{options.format}")
    if options.name is None:
        return path
    values = {"stem": path.stem, "suffix": path.suffix, "number": number}
    if any(f"{{{side}" in options.name for side in ("width", "height")):  # which take a look into each file
        values |= zip(("width", "height"), size_of_file(source))
    return path.with_name(filled(options.name, values))


# Folders


def image_paths(folder: Path, recursive: bool = False) -> list[Path]:
    """The image files of a folder, by name, without hidden ones. Links that lead nowhere and pipes are among them.

    Args:
        recursive: whether those of its subfolders belong to it too.
    """
    visible, unreadable = visible_paths(folder, recursive)
    if folder in unreadable:
        raise UserError(f"cannot read the folder {folder}: {unreadable[folder]}")
    paths = [path for path in visible if is_read(path)]
    if not paths:
        raise UserError(f"{folder} holds no image file ({', '.join(FORMATS)})")
    return paths


def is_read(path: Path) -> bool:
    """Whether a file of a folder is read, by its suffix: HEIF only where its package is installed."""
    file_format = FORMATS.get(path.suffix.lower())
    return file_format is not None and (file_format != "HEIF" or has_heif())


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
    others = [path for path in visible if path.suffix.lower() in OTHER_IMAGE_SUFFIXES]
    names = [path.name for path in others if not is_read(path)]
    if names:
        shown = ", ".join(names[:MAX_SHOWN]) + (", ..." if len(names) > MAX_SHOWN else "")
        print_error(f"jaxtex: note: {folder} holds {len(names)} files of other kinds, which are left out: {shown}")
    for path, reason in unreadable.items():
        print_error(f"jaxtex: note: the folder {path} cannot be read and is left out: {reason}")


def make_folder(folder: Path) -> None:
    """Makes a folder to write to, if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror or error}") from error


# Single files


def open_regular(path: Path) -> BinaryIO:
    """Opens a file, and waits for no pipe and no device."""
    check_regular(path.stat())
    return path.open("rb")


def read_stdin() -> bytes:
    """All of standard input."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UserError("standard input is closed")
    return sys.stdin.buffer.read()


def check_regular(status: os.stat_result) -> None:
    """Checks that a file is one that ends."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError("Is a directory")
    if not stat.S_ISREG(status.st_mode):
        kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(status.st_mode), "a device")
        raise UserError(f"it is {kind}, not a regular file")


def check_kind(name: str, head: bytes) -> None:
    """Checks that a file is of no kind that a codec would take for something else.

    Args:
        name: of the file, for its suffix.
        head: the first bytes.
    """
    suffix = Path(name).suffix.lower()
    kind = next((kind for at, bytes_, kind in RAW_SIGNATURES if head.startswith(bytes_, at)), None)
    if kind or suffix in RAW_SUFFIXES:
        raise raw_error(kind or suffix[1:].upper())
    if head[4:8] == b"ftyp" and head[8:12] in HEIF_BRANDS:
        register_heif()


def has_heif() -> bool:
    """Whether the package of the extra `heif` is installed, which is not imported."""
    return importlib.util.find_spec("pillow_heif") is not None


def register_heif() -> None:
    """Has Pillow read and write HEIF, by the package of the extra `heif`."""
    if not has_heif():
        raise UserError(
            "HEIF (HEIC) needs a package that is not installed (pillow-heif), that of the extra heif; install it in a "
            "checkout of jaxtex: pip install '.[cli,heif]'"
        )
    cast(Any, importlib.import_module("pillow_heif")).register_heif_opener()


def raw_error(kind: str) -> UserError:
    """The error of a camera raw file."""
    return UserError(
        f"it is a camera raw file ({kind}), which has no finished picture but a preview; "
        "develop it to JPEG or TIFF first, for example with darktable or RawTherapee"
    )


def choose_frame(count: int, frame: int | None) -> int:
    """The index, from 0, of the page or frame that is used.

    Args:
        count: how many the file has.
        frame: from 1, as the user chose; `None` for no choice.
    """
    if frame is None and count > 1:
        raise UserError(f"it has {count} pages or frames; choose one with --page 1 to --page {count}")
    if frame is not None and frame > count:
        raise UserError(f"it has no page {frame}, only {count}")
    return (frame or 1) - 1


@contextlib.contextmanager
def read_errors(
    source: PictureFile | Path, broken: str = "it is broken or of an unsupported kind"
) -> Generator[None, None, None]:
    """Turns whatever a reader of a file raises into a `UserError` that names the file.

    Args:
        broken: what an error of the reader itself means.
    """
    try:
        yield
    except OutputError:
        raise
    except UserError as error:
        raise UserError(f"cannot read {source}: {error}") from error
    except MemoryError as error:
        raise UserError(f"cannot read {source}: {describe(error)}") from error
    except Exception as error:  # each codec has errors of its own, and a broken file can raise any of them
        if isinstance(error, OSError) and error.strerror:
            raise UserError(f"cannot read {source}: {error.strerror}") from error
        if type(error).__name__ == "UnidentifiedImageError":
            raise UserError(f"cannot read {source}: it is not an image of a known format") from error
        raise UserError(f"cannot read {source}: {broken}, {one_line(error)}") from error
