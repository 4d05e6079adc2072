"""CUDA C from functions that JAX traces: the statements of one thread, how its numbers behave, and how it is launched.

`emitter` turns a jaxpr into statements, by the tables of `elementwise` and `instructions`; `memory` has the loads that
a traced function may contain; `scalars.cuh` defines the functions that the statements call, and `warp.cuh` what the
lanes of a warp do together. `source` fills the templates of kernels, `nvrtc` compiles them, and `launch` makes them
part of a program.
Nothing here knows what a texture is.
"""

from .elementwise import C_TYPES
from .emitter import Emitter, UnknownPrimitive
from .instructions import flushed_product, normal_product, saturated, scaled_product, shifted_pair
from .launch import (
    FOR_EXPORTS,
    FOR_THIS_EXPORT,
    TARGET,
    THIS_GPU,
    Kernel,
    Launcher,
    local_capability,
    target_capability,
)
from .memory import load_row
from .nvrtc import CompilationFailed, CompilerUnavailable
from .source import fill, read_source, scalars, warp

__all__ = [
    "C_TYPES",
    "FOR_EXPORTS",
    "FOR_THIS_EXPORT",
    "TARGET",
    "THIS_GPU",
    "CompilationFailed",
    "CompilerUnavailable",
    "Emitter",
    "Kernel",
    "Launcher",
    "UnknownPrimitive",
    "fill",
    "flushed_product",
    "load_row",
    "local_capability",
    "normal_product",
    "read_source",
    "saturated",
    "scalars",
    "scaled_product",
    "shifted_pair",
    "target_capability",
    "warp",
]
