"""The files of CUDA C that lie beside this one."""

from pathlib import Path

FOLDER = Path(__file__).parent
# What emitted statements need, ahead of everything else.
SCALARS = (FOLDER / "scalars.cuh").read_text()
