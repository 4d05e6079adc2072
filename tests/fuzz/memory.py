"""Random accesses of single texels, copies, descriptors, gradients and blocks, by a kind and a number.

Every result is compared, bit for bit, with oracles that share no code with the library: `tests/oracles/memory.py` and
`descriptors.py`. Of `surfaces`, by the functions of the core, `cuda`, surfaces by CUDA's names, and `textures`, reads
by CUDA's names, a case has coordinates of one integer type.
"""

import contextlib
import zlib

import jax
import numpy as np

from tests.fuzz import blocks, copies, cuda, descriptors, gradients, surfaces, textures, values
from tests.fuzz.draws import pick
from tests.fuzz.integers import TYPES

# With coordinates of every type.
OF_ACCESSES = {"surfaces": surfaces.CHECKS, "cuda": cuda.CHECKS, "textures": textures.CHECKS}
OTHERS = {"copies": copies.check, "gradients": gradients.check, "values": values.check}
OTHERS |= {"descriptors": lambda rng, samples: (1, len(pick(rng, descriptors.CHECKS)(rng)))}
OTHERS |= {"blocks": lambda rng, samples: (1, pick(rng, blocks.CHECKS)(rng))}
KINDS = (*OF_ACCESSES, *OTHERS)
SAMPLES = 16384


def rng_of(task, number, seed):
    return np.random.default_rng([seed, zlib.crc32(task.encode()), number])


def check_descriptors(numbers, seed):
    """Cases of descriptors, all in one program, and how many arrays it made."""
    make = lambda: [pick(rng, descriptors.CHECKS)(rng) for rng in (rng_of("descriptors", n, seed) for n in numbers)]
    return len(jax.tree.leaves(jax.jit(make)()))


def check(task, number, seed, samples):
    """One case: how many accesses there were, and how many values were compared.

    Args:
        task: a kind, such as ``"copies"``, or a kind and a type of coordinates, such as ``"surfaces/int64_numpy"``.

    Raises:
        AssertionError: if the library and the oracle differ.
    """
    kind, _, name = task.partition("/")
    rng = rng_of(task, number, seed)
    if kind not in OF_ACCESSES:
        return OTHERS[kind](rng, samples)
    integers = TYPES[name]
    with jax.enable_x64(True) if integers.x64 else contextlib.nullcontext():
        return pick(rng, OF_ACCESSES[kind])(rng, integers, samples)


def check_seed(kind, seed, samples=SAMPLES):
    """The case of a kind that a seed draws, each type of coordinates in turn."""
    types = [*TYPES]
    task = f"{kind}/{types[seed % len(types)]}" if kind in OF_ACCESSES else kind
    return check(task, seed, 0, samples)
