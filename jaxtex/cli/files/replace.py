"""The file that is written: checked before any work, then replaced at once, with the permissions that `cp` would give.

A target that exists keeps its permissions, its owner and its extended attributes; a new one takes the permissions of
the input, less the process's mask. A symbolic link stays a link. A hard link does not, since another name may be a
backup.
"""

import contextlib
import errno
import io
import os
import secrets
import stat
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from ..process import FULL_DISK, FullDiskError, UserError
from .inputs import STREAM, check_regular

DEFAULT_MODE = 0o666
# Windows would else change the ends of lines.
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
PREFIX, SUFFIX = ".jaxtex-", ".part"
STALE_SECONDS = 2  # after which a temporary file that no process holds is a dead one's


def check_target(path: Path, force: bool) -> None:
    """Checks that a file can be written or replaced, before any work."""
    try:
        target = linked(path)
        status = status_of(target)
        if status is None and status_of(target.parent) is None:
            raise UserError(f"there is no folder {target.parent}; make it first")
        if status is not None:
            check_regular(status)
            if not force and not is_writable(target, status):
                raise UserError("it is read-only; --force replaces it")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"no permission to write to the folder {target.parent}")
    except UserError as error:
        raise UserError(f"cannot write {path}: {error}") from error
    except OSError as error:
        raise write_error(path, error) from error


def linked(path: Path) -> Path:
    """The file that a symbolic link leads to, whether it exists or not; any other path as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def status_of(path: Path | None) -> os.stat_result | None:
    """The status of a file, or `None` if there is none."""
    try:
        return path.stat() if path else None
    except FileNotFoundError:
        return None


def is_writable(path: Path, status: os.stat_result) -> bool:
    """Whether a file may be written, for a superuser too: one who took away the permission meant it."""
    return bool(status.st_mode & 0o222) and os.access(path, os.W_OK)


def write_error(path: Path, error: OSError) -> UserError:
    """The error of a file that cannot be written."""
    kind = FullDiskError if error.errno in FULL_DISK else UserError
    return kind(f"cannot write {path}: {error.strerror or error}")


@contextlib.contextmanager
def opened_target(
    path: Path, source: Path | None, preserve_times: bool
) -> Generator[tuple[BinaryIO, tuple[str, ...]], None, None]:
    """A stream to write an output to, which at the end of the block becomes the file, and notes as of `replacing`."""
    if path != STREAM:
        with replacing(path, source, preserve_times) as replacement:
            yield replacement
        return
    with io.BytesIO() as stream:
        yield stream, ()
        write_stdout(stream.getvalue())


@contextlib.contextmanager
def replacing(
    path: Path, source: Path | None = None, preserve_times: bool = False
) -> Generator[tuple[BinaryIO, tuple[str, ...]], None, None]:
    """Opens a temporary file beside `path`, and renames it at the end of the block; the temporary file never stays.

    The block gets a stream, and notes on what changes for other names of the file, as the ends of sentences.

    Args:
        source: the file that the new one is made from.
        preserve_times: whether the target takes the times of `source`.
    """
    target, status = linked(path), status_of(source)
    partial = target.with_name(f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}")
    try:
        old = status_of(target)
        mode = first_mode(old, status)
        with open(partial, "w+b", opener=lambda path, _: os.open(path, CREATE, mode)) as stream:
            hold(stream.fileno())
            yield stream, link_notes(path, old)
        put_in_place(partial, target, status, preserve_times)
    except BaseException as error:  # an interrupt too
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError):
            raise write_error(path, error) from error
        raise


def first_mode(old: os.stat_result | None, source: os.stat_result | None) -> int:
    """The permissions of a temporary file: to write it, and nobody else's where the target has its own.

    Args:
        old: the status of the target; `None` if there is none.
        source: that of the file that the new one is made from.
    """
    return 0o600 if old else mode_of(source) | stat.S_IWUSR


def mode_of(source: os.stat_result | None) -> int:
    """The permissions of a new file, before the mask of the process."""
    return DEFAULT_MODE if source is None else stat.S_IMODE(source.st_mode) & 0o777


def put_in_place(partial: Path, target: Path, source: os.stat_result | None, preserve_times: bool) -> None:
    """Renames a complete temporary file to a target whose links are resolved, with attributes as of `replacing`."""
    old = status_of(target)
    if old:
        copy_attributes(target, old, partial)
    elif not mode_of(source) & stat.S_IWUSR:
        os.chmod(partial, stat.S_IMODE(partial.stat().st_mode) & ~stat.S_IWUSR)
    if preserve_times and source:
        os.utime(partial, ns=(source.st_atime_ns, source.st_mtime_ns))
    os.replace(partial, target)


def link_notes(path: Path, old: os.stat_result | None) -> tuple[str, ...]:
    """A note if the file that is replaced has other names."""
    if old is None or old.st_nlink < 2:
        return ()
    names = "another name" if old.st_nlink == 2 else f"{old.st_nlink - 1} other names"
    return (f"is written to {path.name}, which had {names}; the old picture stays there",)


def copy_attributes(target: Path, old: os.stat_result, partial: Path) -> None:
    """Gives the new file the owner, the permissions and the extended attributes of the one that it replaces."""
    if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (os.geteuid(), partial.stat().st_gid):
        with contextlib.suppress(OSError):  # as `sed -i`: only a superuser gives files away
            os.chown(partial, old.st_uid, old.st_gid)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(target):
                with contextlib.suppress(OSError):
                    os.setxattr(partial, name, os.getxattr(target, name))
    os.chmod(partial, stat.S_IMODE(old.st_mode))


def hold(file: int) -> bool:
    """Locks an open file until it is closed, where there are locks; returns whether no other process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_stale_files(folder: Path) -> None:
    """Removes the temporary files of processes that were killed. One that a process is writing is locked."""
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            if time.time() - path.stat().st_ctime > STALE_SECONDS and hold(file.fileno()):
                path.unlink()


def write_stdout(data: bytes) -> None:
    """Writes bytes to standard output."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UserError("cannot write to standard output: it is closed")
    left = memoryview(data)
    try:
        while left:  # under PYTHONUNBUFFERED, standard output may take a part of the bytes without an error
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.buffer.flush()
    except OSError as error:
        raise UserError(f"cannot write to standard output: {error.strerror or error}") from error
