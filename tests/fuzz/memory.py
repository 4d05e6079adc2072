"""Random accesses of single texels, copies, descriptors, gradients and blocks, by a kind and a number.

Every result is compared, bit for bit, with oracles that share no code with the library: `tests/oracles/memory.py` and
`descriptors.py`. Of `surfaces`, by the functions of the core, `cuda`, surfaces by CUDA's names, and `textures`, reads
by CUDA's names, a case has coordinates of one integer type.
"""

import zlib

import numpy as np

from tests.fuzz import blocks, copies, cuda, descriptors, gradients, surfaces, textures, values
from tests.fuzz.integers import TYPES

# With coordinates of every type.
OF_ACCESSES = {"surfaces": surfaces.check, "cuda": cuda.check, "textures": textures.check}
OTHERS = {"copies": copies.check, "descriptors": descriptors.check, "gradients": gradients.check}
OTHERS |= {"values": values.check, "blocks": blocks.check}
KINDS = (*OF_ACCESSES, *OTHERS)
SAMPLES = 16384


def check(task, number, seed, samples):
    """One case: how many accesses there were, and how many values were compared.

    Args:
        task: a kind, such as ``"copies"``, or a kind and a type of coordinates, such as ``"surfaces/int64_numpy"``.

    Raises:
        AssertionError: if the library and the oracle differ.
    """
    kind, _, name = task.partition("/")
    rng = np.random.default_rng([seed, zlib.crc32(task.encode()), number])
    if kind in OF_ACCESSES:
        return OF_ACCESSES[kind](rng, TYPES[name], samples)
    return OTHERS[kind](rng, samples)


def check_seed(kind, seed, samples=SAMPLES):
    """The case of a kind that a seed draws, each type of coordinates in turn."""
    types = [*TYPES]
    task = f"{kind}/{types[seed % len(types)]}" if kind in OF_ACCESSES else kind
    return check(task, seed, 0, samples)
