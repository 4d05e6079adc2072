"""The public interface: no name and no signature changes without a line in the changelog."""

import re

import pytest

import jaxtex
from tests.house import public_api

CHANGELOG = (public_api.ROOT / "CHANGELOG.md").read_text()


@pytest.fixture(scope="module")
def lines():
    for library in ("equinox", "flax"):
        pytest.importorskip(library)
    return public_api.public_api()


def test_the_public_names_are_as_recorded(lines):
    before = public_api.CURRENT.read_text().splitlines()
    changes = [f"{'+' if line in lines else '-'} {line}" for line in sorted({*lines} ^ {*before})]
    assert not changes, (
        f"the public interface changed: run `python -m tests.house.public_api --write`, and add a line to the section "
        f"[{top_version()}] of CHANGELOG.md"
    )


def test_the_changelog_names_what_changed_since_the_last_release():
    version, before = public_api.recorded()
    text = public_api.since(version, CHANGELOG)
    missing = public_api.unnamed(public_api.CURRENT.read_text().splitlines(), before, text)
    assert not missing, f"the sections of CHANGELOG.md above [{version}] name neither these nor their classes"


def top_version():
    return re.search(r"^## \[(.+?)\]", CHANGELOG, re.MULTILINE)[1]


LISTED = ["$ jaxtex warp", "$ jaxtex warp --scale", "jaxtex.Sampler(*, filter_mode='linear')", "jaxtex.sample(texture)"]
CHANGES = {
    "a name": (["jaxtex.fetch(texture)"], "`fetch` reads a texel.", "`fetching` reads."),
    "a parameter": (["jaxtex.sample(texture, lod)"], "`sample` takes lod.", "`resample` takes lod."),
    "a method": (["jaxtex.Sampler.copy(self)"], "`Sampler.copy` is new.", "Samples are new."),
    "a module": (["jaxtex.warp.rotate(image)"], "`jaxtex.warp`: image warps.", "`jaxtex.cuda`: warps."),
    "an option": (["$ jaxtex warp --tile"], "`--tile` bounds memory.", "`--tiles` bounds memory."),
    "a command": (["$ jaxtex resize", "$ jaxtex resize --size"], "`jaxtex resize` scales.", "`jaxtex` scales."),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_no_line_names_is_found(change):
    added, good, bad = CHANGES[change]
    assert public_api.unnamed([*LISTED, *added], LISTED, good) == []
    assert public_api.unnamed([*LISTED, *added], LISTED, bad) == sorted(map(public_api.name_of, added))


def test_signatures_show_names_kinds_and_defaults():
    def function(a, *, mode: "int" = jaxtex.FilterMode.LINEAR, dtype=int, modes=(jaxtex.FilterMode.POINT,)): ...

    assert public_api.signature_of(function) == ("(a, *, mode=FilterMode.LINEAR, dtype=int, modes=(FilterMode.POINT,))")
    assert public_api.lines_of("x", jaxtex.Limit) == ["x", "x.TAPS = 'taps'"]
