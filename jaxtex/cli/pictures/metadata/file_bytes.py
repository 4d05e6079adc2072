"""The bytes of an open file, read where they are asked for."""

# pyright: strict

import io
import os


class FileBytes:
    """An open file as far as it can stand for its bytes: its length, and slices with both ends.

    Args:
        file: stays open. Its position changes.
    """

    def __init__(self, file: io.BufferedIOBase | io.RawIOBase) -> None:
        self.file = file
        self.length = file.seek(0, os.SEEK_END)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self.length)
        self.file.seek(start)
        return self.file.read(max(0, stop - start)) or b""


# What directories are read from.
Bytes = bytes | bytearray | FileBytes
