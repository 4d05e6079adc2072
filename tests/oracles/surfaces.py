"""What a surface access does, byte by byte: loops over Python integers. Shares no code with the library."""

import numpy as np

COMBINE = {"write": lambda old, new: new, "add": lambda old, new: old + new, "min": np.minimum, "max": np.maximum}


def locate(x, others, size, memory, unsigned, mode):
    """The first byte and the indices of an access of `size` bytes, or None where it is outside.

    `memory` is bytes of shape (*outer, row bytes); `others` an index for each outer axis; `unsigned` tells which of
    those are counted as unsigned numbers, so that a negative one is a huge one.
    """
    row = memory.shape[-1]
    others = [k % 2**32 if wide else k for k, wide in zip(others, unsigned)]
    if mode == "clamp":
        x = min(max(x, 0), (row - size) // size * size)
        others = [min(max(k, 0), n - 1) for k, n in zip(others, memory.shape)]
    if x < 0 or x + size > row or any(not 0 <= k < n for k, n in zip(others, memory.shape)):
        return None
    return x, tuple(others)


def read(memory, size, x, others, unsigned, mode):
    """The bytes that each access reads, (n, size)."""
    out = np.zeros((len(x), size), np.uint8)
    for i in range(len(x)):
        found = locate(int(x[i]), [int(k[i]) for k in others], size, memory, unsigned, mode)
        if found is not None:
            out[i] = memory[found[1]][found[0] : found[0] + size]
    return out


def change(memory, values, x, others, unsigned, mode, how="write", dtype=np.uint8):
    """The bytes after one write after the other of `values`, (n, size); numbers of `dtype` are joined by `how`."""
    memory = memory.copy()
    for i, value in enumerate(values):
        found = locate(int(x[i]), [int(k[i]) for k in others], len(value), memory, unsigned, mode)
        if found is not None:
            cell = memory[found[1]][found[0] : found[0] + len(value)]
            cell[:] = COMBINE[how](cell.view(dtype), value.view(dtype)).view(np.uint8)
    return memory
