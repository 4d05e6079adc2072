"""What other libraries return: recorded in `tests/data/peers.npz.xz`, as the tests' environment has none of them.

A test gives `results` its inputs and the program of another library, and compares our result with each of theirs.
`python -m tests.data.record_peers` runs these tests where the libraries are installed, and records anew.
"""

import functools
import importlib
import io
import json
import lzma
import zlib
from pathlib import Path

import numpy as np

PATH = Path(__file__).parents[1] / "data" / "peers.npz.xz"
HOW = "run python -m tests.data.record_peers where the library is installed"
# While results are recorded: the arrays of the file to come, and its index.
recording: dict | None = None


@functools.cache
def recorded():
    """The arrays of the file, and its index: the library, and the checksum of the inputs, of each name."""
    with np.load(io.BytesIO(lzma.decompress(PATH.read_bytes()))) as file:
        arrays = dict(file)
    return arrays, json.loads(bytes(arrays["index"]))


def checksum(inputs):
    """Of the bits, shapes and types of arrays."""
    total = 0
    for array in map(np.asarray, inputs):
        total = zlib.crc32(f"{array.dtype.str} {array.shape}".encode(), total)
        total = zlib.crc32(array.tobytes(), total)
    return total


def results(library, name, program, *inputs):
    """What `program(library, *inputs)`, a list of arrays, returned when it was recorded under `name`.

    If the library is installed, what the program returns today comes second, so that a test compares with both.
    """
    try:
        module = importlib.import_module(library)
    except ModuleNotFoundError:
        module = None
    if recording is not None:
        return [record(module, name, program, inputs)]
    arrays, index = recorded()
    assert name in index, f"{name!r} is not recorded; {HOW}"
    assert index[name]["inputs"] == checksum(inputs), f"{name!r} was recorded for other inputs; {HOW}"
    found = [[arrays[f"{name}/{k}"] for k in range(index[name]["arrays"])]]
    return found if module is None else [*found, computed(module, program, inputs)]


def computed(module, program, inputs):
    """Programs get copies: a library may write into its arguments."""
    return [np.asarray(array) for array in program(module, *(np.array(array) for array in inputs))]


def record(module, name, program, inputs):
    assert module is not None, f"{name!r} cannot be recorded without its library"
    assert name not in recording["index"], f"{name!r} is recorded twice"
    found = computed(module, program, inputs)
    about = {"library": f"{module.__name__} {module.__version__}", "inputs": checksum(inputs), "arrays": len(found)}
    recording["index"][name] = about
    recording["arrays"].update({f"{name}/{k}": array for k, array in enumerate(found)})
    return found
