"""The files of CUDA C, with slots that Python fills."""

import re
from pathlib import Path

# A slot is a word between two signs @. A slot that is alone on its line takes several lines, indented as it is.
SLOT = re.compile(r"^(?P<indent> *)@(?P<lines>\w+)@$|@(?P<word>\w+)@", re.MULTILINE)
# What emitted statements need, ahead of everything else.
SCALARS = (Path(__file__).parent / "scalars.cuh").read_text()


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
