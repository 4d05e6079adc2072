"""Records `peers.npz.xz`: what the programs of other libraries in the tests return; see `tests/support/peers.py`.

    python -m tests.data.record_peers

It needs the extras `test` and `bench`. It runs the files of tests that compare with a library, and writes what they
asked for, if all tests pass and none is skipped.
"""

import io
import json
import lzma
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support import peers

TESTS = Path(__file__).parents[1]


class Skipped:
    """Counts tests that did not run."""

    count = 0

    def pytest_runtest_logreport(self, report):
        self.count += report.skipped


def main():
    files = [path for path in sorted(TESTS.rglob("test_*.py")) if "peers.results(" in path.read_text()]
    peers.recording, skipped = {"index": {}, "arrays": {}}, Skipped()
    code = pytest.main(["-n", "0", "-rs", *map(str, files)], plugins=[skipped])
    if code or skipped.count:
        sys.exit(f"nothing is written: pytest returned {int(code)}, and {skipped.count} tests were skipped")
    index, arrays = peers.recording["index"], dict(sorted(peers.recording["arrays"].items()))
    arrays["index"] = np.frombuffer(json.dumps(index, sort_keys=True).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    peers.PATH.write_bytes(lzma.compress(file.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(index)} results, {peers.PATH.stat().st_size} bytes, {sorted({x['library'] for x in index.values()})}")


if __name__ == "__main__":
    main()
