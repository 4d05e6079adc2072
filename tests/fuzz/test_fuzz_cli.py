"""A few of the random command lines of `tests/fuzz/cli.py`, and that a failure is reported."""

from jaxtex.cli.commands import COMMANDS
from tests.fuzz import __main__ as fuzz
from tests.fuzz import cli as fuzz_cli

# Most of them compile nothing.
SEEDS = (*range(14), *range(24, 46))


def test_command_lines_end_as_they_must():
    codes = [fuzz_cli.check(seed) for seed in SEEDS]
    assert {*codes} == {0, 2}


def test_all_commands_are_drawn():
    assert {*COMMANDS} == {*fuzz_cli.DRAWN_COMMANDS}


def fails(_):
    raise KeyError("a fault")


def test_the_program_says_how_to_repeat_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(fuzz_cli, "main", fails)
    assert fuzz.run_others("cli", range(7, 9)) == 2
    assert "  python -m tests.fuzz --what cli --cases 1 --seed 8\n" in capsys.readouterr().out
    assert fuzz.run_others("descriptors", range(3)) == 0
    assert "seeds 0 to 2: 3 descriptors, 0 failed" in capsys.readouterr().out
