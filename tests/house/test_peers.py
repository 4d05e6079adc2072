"""The record of other libraries' results: it serves the inputs that it was made with, and says where it is from."""

import types

import numpy as np
import pytest

from tests.support import peers

ARRAYS = np.float32([1, 2, 3]), np.arange(6).reshape(2, 3)
# Stands for a library that is installed.
LIBRARY = types.SimpleNamespace(__name__="peer", __version__="1.0")


def program(library, first, second):
    second += 1
    return [first * 2, second]


@pytest.fixture
def record(monkeypatch):
    """A record of one result, of a library that is not installed."""
    monkeypatch.setattr(peers, "recording", {"index": {}, "arrays": {}})
    monkeypatch.setattr(peers.importlib, "import_module", lambda name: LIBRARY)
    (now,) = peers.results("peer", "double", program, *ARRAYS)
    np.testing.assert_array_equal(now[0], [2, 4, 6])
    arrays, index = peers.recording["arrays"], peers.recording["index"]
    monkeypatch.undo()
    monkeypatch.setattr(peers, "recorded", lambda: (arrays, index))
    return index


def test_what_was_recorded_is_found(record):
    (found,) = peers.results("no_such_library", "double", program, *ARRAYS)
    np.testing.assert_array_equal(found[0], [2, 4, 6])
    np.testing.assert_array_equal(found[1], [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(ARRAYS[1], np.arange(6).reshape(2, 3))
    assert record["double"]["library"] == "peer 1.0"


@pytest.mark.usefixtures("record")
def test_an_installed_library_is_asked_as_well(monkeypatch):
    monkeypatch.setattr(peers.importlib, "import_module", lambda name: LIBRARY)
    recorded, now = peers.results("peer", "double", lambda library, first, second: [first, second], *ARRAYS)
    np.testing.assert_array_equal(recorded[0], [2, 4, 6])
    np.testing.assert_array_equal(now[0], ARRAYS[0])


@pytest.mark.parametrize(
    "inputs",
    [
        (ARRAYS[0] + np.float32([0, 0, 2**-20]), ARRAYS[1]),
        (ARRAYS[0].astype(np.float64), ARRAYS[1]),
        (ARRAYS[0], ARRAYS[1].reshape(3, 2)),
    ],
)
@pytest.mark.usefixtures("record")
def test_other_inputs_are_an_error(inputs):
    with pytest.raises(AssertionError, match="'double' was recorded for other inputs; run python -m"):
        peers.results("no_such_library", "double", program, *inputs)


@pytest.mark.usefixtures("record")
def test_what_is_not_recorded_is_an_error():
    with pytest.raises(AssertionError, match="'triple' is not recorded; run python -m"):
        peers.results("no_such_library", "triple", program, *ARRAYS)


def test_the_file_holds_what_its_index_says():
    arrays, index = peers.recorded()
    names = {f"{name}/{k}" for name, about in index.items() for k in range(about["arrays"])}
    assert names == arrays.keys() - {"index"}
    assert {about["library"].split()[0] for about in index.values()} == {"cv2", "torch"}
