"""A plugin of pytest: some tests run, in a given order, and none after some seconds of the processors."""

import collections
import itertools
import os
import time

import pytest

SECONDS, TESTS = "JAXTEX_FAULT_SECONDS", "JAXTEX_FAULT_TESTS"
seconds = float(os.environ.get(SECONDS, "inf"))
tests = os.environ.get(TESTS, "").splitlines()
ran = []


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """First three cases of each test, then the others."""
    cases = collections.defaultdict(list)
    for item in items:
        cases[f"{item.nodeid.partition('::')[0]}::{item.originalname}"].append(item)
    chosen = [cases[test] for test in tests if test in cases]
    some = [[of_test[k] for k in sorted({0, len(of_test) // 2, len(of_test) - 1})] for of_test in chosen]
    if tests:
        items[:] = dict.fromkeys(itertools.chain(*some, *chosen))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    if time.process_time() > seconds:
        return True  # as if it had run
    ran.append(item)


def pytest_terminal_summary(terminalreporter):
    files = dict.fromkeys(item.path.stem for item in ran)
    terminalreporter.write_line(
        f"ran {len(ran)} of {terminalreporter._session.testscollected} cases: {' '.join(files)}"
    )
