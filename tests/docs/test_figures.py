"""Figures that stand in several places: one source, `docs/figures.toml`, and the same number everywhere."""

import re
import tomllib
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads((ROOT / "docs" / "figures.toml").read_text())
FIGURES = TABLE["figures"]
NUMBER = r"(\d+(?:\.\d+)?)(?![\d]|\.\d)"


def agrees(shown, value):
    """Whether a number is a value, to as many digits as it shows; halves may be rounded either way."""
    unit = Decimal(shown).as_tuple().exponent
    around = {Decimal(value).quantize(Decimal(1).scaleb(unit), way) for way in (ROUND_DOWN, ROUND_UP)}
    near = {found for found in around if abs(found - Decimal(value)) * 2 <= Decimal(1).scaleb(unit)}
    return Decimal(shown) in near and len(shown.partition(".")[2]) <= len(value.partition(".")[2])


def shown_in(text, pattern):
    """The numbers that a text shows where the pattern has {}."""
    return re.findall(pattern.replace("{}", NUMBER), text, re.MULTILINE)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_the_same_in_all_places(name):
    figure = FIGURES[name]
    for page, pattern in figure["places"]:
        found = shown_in((ROOT / page).read_text(), pattern)
        assert found, f"{page} no longer shows the figure {name}: change its place in docs/figures.toml"
        wrong = [number for number in found if not agrees(number, figure["value"])]
        assert not wrong, f"{page} has {wrong[0]} for the figure {name}, and docs/figures.toml {figure['value']}"


def half_a_digit(text):
    return Decimal(1).scaleb(Decimal(text).as_tuple().exponent) / 2


@pytest.mark.parametrize("name", [name for name in FIGURES if "of" in FIGURES[name]])
def test_a_quotient_is_that_of_its_figures(name):
    value = FIGURES[name]["value"]
    above, below = (FIGURES[other]["value"] for other in FIGURES[name]["of"])
    low = (Decimal(above) - half_a_digit(above)) / (Decimal(below) + half_a_digit(below))
    high = (Decimal(above) + half_a_digit(above)) / (Decimal(below) - half_a_digit(below))
    assert low - half_a_digit(value) <= Decimal(value) <= high + half_a_digit(value)


def test_every_figure_says_what_it_is_and_how_it_was_measured():
    for name, figure in FIGURES.items():
        assert set(figure) - {"of"} == {"what", "value", "unit", "run", "places"}, name
        assert figure["run"] in TABLE["runs"], name
        places = [tuple(place) for place in figure["places"]]
        assert len(places) == len(set(places)), name
    assert all(set(run) == {"on", "command"} for run in TABLE["runs"].values())


def test_a_different_number_is_found():
    assert agrees("0.18", "0.177")
    assert agrees("0.177", "0.177")
    assert agrees("2.09", "2.089")
    assert agrees("0.42", "0.425")
    assert agrees("0.43", "0.425")
    assert agrees("2", "1.58")
    assert not agrees("0.17", "0.177")
    assert not agrees("0.1770", "0.177")
    assert not agrees("1", "1.58")
    assert shown_in("| a | 0.54 | 0.88 |", r"\| a \| [\d.]+ \| {}") == ["0.88"]
