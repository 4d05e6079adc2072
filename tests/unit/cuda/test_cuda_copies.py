"""Copies into and out of CUDA arrays: widths and pitches in bytes, positions, boxes of volumes and layers, refusals."""

import functools

import numpy as np
import pytest

from jaxtex import cuda
from jaxtex.cuda import CudaError, Extent, Memcpy3DParms, PitchedPtr, ResourceDesc
from tests.support.tolerances import named
from tests.unit.cuda.test_cuda import refused

ARRAY = cuda.mallocArray(cuda.createChannelDesc("float2"), 4, 3)
VOLUME = cuda.malloc3DArray(cuda.createChannelDesc("float"), (4, 3, 2))
MEMORY = np.zeros(64, np.float32)
BOX = Extent(1, 1, 1)
# Beside what random copies find, tests/fuzz/copies.py.
REFUSED = {
    "a volume": (1, lambda: cuda.memcpy2DToArray(VOLUME, 0, 0, MEMORY, 16, 16, 1)),
    "no source": (1, lambda: cuda.memcpy3D(Memcpy3DParms(dstArray=VOLUME, extent=BOX))),
    "two targets": (
        1,
        lambda: cuda.memcpy3D(Memcpy3DParms(VOLUME, dstArray=VOLUME, dstPtr=PitchedPtr(MEMORY, 4, 1, 1), extent=BOX)),
    ),
    "pitched memory without a size": (
        1,
        lambda: cuda.createTextureObject(ResourceDesc.Pitch2D(MEMORY, pitchInBytes=64), cuda.TextureDesc()),
    ),
    "a pitch that is not aligned": (
        1,
        lambda: cuda.createTextureObject(
            ResourceDesc.Pitch2D(MEMORY, cuda.createChannelDesc("float"), 2, 2, 40), cuda.TextureDesc()
        ),
    ),
    "one row that is longer than its pitch": (1, lambda: cuda.memcpy2D(MEMORY, 8, MEMORY, 64, 16, 1)),
    "an allocation of nothing": (1, lambda: cuda.mallocPitch(0, 4)),
}


def test_refusals_have_the_code_of_cuda():
    for name, (code, call) in REFUSED.items():
        with named(name):
            refused(call, code)


FOUR = np.zeros(4, np.float32)
ROWS = PitchedPtr(FOUR, 8, 2, 2)
TOO_LITTLE = "has 16 bytes, and the call needs"
INTO_ROWS = functools.partial(Memcpy3DParms, VOLUME, dstPtr=ROWS)
SENTENCES = {
    f"memcpy: src {TOO_LITTLE} 99": lambda: cuda.memcpy(MEMORY, FOUR, 99),
    f"memcpy: dst {TOO_LITTLE} 99": lambda: cuda.memcpy(FOUR, MEMORY, 99),
    f"memcpyToArray: src {TOO_LITTLE} 24": lambda: cuda.memcpyToArray(ARRAY, 0, 0, FOUR, 24),
    f"memcpyFromArray: dst {TOO_LITTLE} 24": lambda: cuda.memcpyFromArray(FOUR, ARRAY, 0, 0, 24),
    f"memcpy2D: src {TOO_LITTLE} 17": lambda: cuda.memcpy2D(MEMORY, 9, FOUR, 9, 8, 2),
    f"memcpy2DToArray: src {TOO_LITTLE} 24": lambda: cuda.memcpy2DToArray(ARRAY, 0, 0, FOUR, 16, 8, 2),
    f"memcpy2DFromArray: dst {TOO_LITTLE} 24": lambda: cuda.memcpy2DFromArray(FOUR, 16, ARRAY, 0, 0, 8, 2),
    f"memcpy3D: p.dstPtr {TOO_LITTLE} 24": lambda: cuda.memcpy3D(INTO_ROWS(extent=Extent(2, 3, 1))),
    f"memset: devPtr {TOO_LITTLE} 17": lambda: cuda.memset(FOUR, 0, 17),
    f"memset2D: devPtr {TOO_LITTLE} 18": lambda: cuda.memset2D(FOUR, 8, 0, 2, 3),
    f"memset3D: pitchedDevPtr {TOO_LITTLE} 32": lambda: cuda.memset3D(ROWS, 0, (8, 2, 2)),
    "memcpy: count is -1, expected at least 0": lambda: cuda.memcpy(MEMORY, MEMORY, -1),
    "memcpy2D: dpitch is 8 bytes, expected": lambda: cuda.memcpy2D(MEMORY, 8, MEMORY, 16, 12, 1),
    "memcpy2D: spitch is -8, expected": lambda: cuda.memcpy2D(MEMORY, 8, MEMORY, -8, 4, 1),
    "memcpy3D: p.extent.height is -1,": lambda: cuda.memcpy3D(INTO_ROWS(extent=(1, -1, 1))),
    "memcpy3D: p.dstPos.y is -2,": lambda: cuda.memcpy3D(INTO_ROWS(dstPos=(0, -2, 0), extent=BOX)),
    "memset: count is -1,": lambda: cuda.memset(MEMORY, 0, -1),
    "memset2D: height is -1,": lambda: cuda.memset2D(MEMORY, 8, 0, 4, -1),
    r"memset3D: extent\[2\] is -1,": lambda: cuda.memset3D(ROWS, 0, (1, 1, -1)),
    "createTextureObject: pResDesc.height is -1,": lambda: cuda.createTextureObject(
        ResourceDesc.Pitch2D(MEMORY, cuda.createChannelDesc("float"), 2, -1, 32), cuda.TextureDesc()
    ),
}
NO_INTEGERS = {
    "memcpy: count is 1.5, expected an int": lambda: cuda.memcpy(MEMORY, MEMORY, 1.5),
    "memcpyToArray: hOffset is 0.5, expected an int": lambda: cuda.memcpyToArray(ARRAY, 0, 0.5, MEMORY, 8),
    "memset: value is 'a', expected an int": lambda: cuda.memset(MEMORY, "a", 1),
    "memcpy3D: p.extent.width is 2.0, expected": lambda: cuda.memcpy3D(INTO_ROWS(extent=(2.0, 1, 1))),
}


def test_refusals_name_the_argument_as_the_caller_does():
    for kind, sentences in ((CudaError, SENTENCES), (TypeError, NO_INTEGERS)):
        for sentence, call in sentences.items():
            with pytest.raises(kind, match=f"^{sentence}"):
                call()
