"""A few of the random command lines of `tests/fuzz/cli.py`, and that it finds what is wrong."""

from pathlib import Path

import pytest

from jaxtex.cli.commands import COMMANDS
from tests.fuzz import __main__ as fuzz
from tests.fuzz import cli as fuzz_cli

# Most of them compile nothing.
SEEDS = (*range(14), *range(24, 46))
CARRIED_OUT = 7


def test_command_lines_end_as_they_must():
    codes = [fuzz_cli.check(seed) for seed in SEEDS]
    assert {*codes} == {0, 2}


def test_all_commands_are_drawn():
    assert {*COMMANDS} == {*fuzz_cli.DRAWN_COMMANDS}


def test_a_seed_is_a_command_line():
    assert fuzz_cli.case_of(5) == fuzz_cli.case_of(5)
    assert fuzz_cli.case_of(5) != fuzz_cli.case_of(6)


def fails(_):
    raise KeyError("a fault")


def leaves(_):
    Path("left.tmp").write_bytes(b"x")
    return 0


def overwrites(_):
    Path("flow.npy").write_bytes(b"x")
    return 0


def writes_half(_):
    Path("out.png").write_bytes(b"\x89PNG\r\n")
    return 0


FAULTS = {
    "KeyError": fails,
    "it left": leaves,
    r"it left \['flow.npy'\]": overwrites,
    "UnidentifiedImageError|OSError": writes_half,
    "exit code 1": lambda _: 1,
    "exit code 2, and it says ''": lambda _: 2,
}


@pytest.mark.parametrize("message", FAULTS)
def test_what_is_wrong_is_found(monkeypatch, message):
    monkeypatch.setattr(fuzz_cli, "main", FAULTS[message])
    with pytest.raises(AssertionError, match=rf"^jaxtex .*{message}"):
        fuzz_cli.check(CARRIED_OUT)


def test_the_program_says_how_to_repeat_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(fuzz_cli, "main", fails)
    assert fuzz.run_others("cli", range(7, 9)) == 2
    assert "  python -m tests.fuzz --what cli --cases 1 --seed 8\n" in capsys.readouterr().out
    assert fuzz.run_others("descriptors", range(3)) == 0
    assert "seeds 0 to 2: 3 descriptors, 0 failed" in capsys.readouterr().out
