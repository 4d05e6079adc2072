"""CUDA C from functions that JAX traces: the statements of one thread, and how its numbers behave.

`emitter` turns a jaxpr into statements, by the table of `elementwise`; `memory` has the loads that a traced function
may contain; `scalars.cuh` defines the functions that the statements call. Nothing here knows what a texture is.
"""

from .emitter import Emitter, Names, UnknownPrimitive
from .memory import load_row
from .source import SCALARS

__all__ = ["SCALARS", "Emitter", "Names", "UnknownPrimitive", "load_row"]
