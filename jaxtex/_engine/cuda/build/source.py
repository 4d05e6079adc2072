"""The files of CUDA C, with slots that Python fills. They are read when a kernel is first needed, not at import."""

import functools
import re
from pathlib import Path

# A slot is a word between two signs @. A slot that is alone on its line takes several lines, indented as it is.
SLOT = re.compile(r"^(?P<indent> *)@(?P<lines>\w+)@$|@(?P<word>\w+)@", re.MULTILINE)


@functools.cache
def read_source(path: Path) -> str:
    """The text of a file."""
    return path.read_text()


def scalars() -> str:
    """What emitted statements call, to be put ahead of them."""
    return read_source(Path(__file__).parents[1] / "trace" / "scalars.cuh")


def warp() -> str:
    """What kernels call whose threads work together, to be put after `scalars`."""
    return read_source(Path(__file__).parents[1] / "trace" / "warp.cuh")


def fill(template: str, **slots: object) -> str:
    """A template with every slot filled.

    Raises:
        KeyError: if a slot of the template is not given.
    """

    def filled(found: re.Match[str]) -> str:
        if found["word"]:
            return str(slots[found["word"]])
        lines = slots[found["lines"]]
        return "\n".join(found["indent"] + line for line in (lines if isinstance(lines, list) else [str(lines)]))

    return SLOT.sub(filled, template)
