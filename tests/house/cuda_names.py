"""`python -m tests.house.cuda_names --write`: the stub of `jaxtex.cuda` for type checkers, made of its declarations.

Without `--write` it says whether the stub, `jaxtex/cuda/__init__.pyi`, is as it should be.
"""

import argparse
import inspect
import itertools
import textwrap
from pathlib import Path

from jaxtex import cuda
from jaxtex.cuda import declarations as declared
from jaxtex.cuda.declarations import DECLARATIONS
from jaxtex.cuda.names import WITH_PREFIX

ROOT = Path(__file__).parents[2]
STUB = ROOT / "jaxtex" / "cuda" / "__init__.pyi"
WIDTH = 120

HEAD = '''"""The types of `jaxtex.cuda`, made by `python -m tests.house.cuda_names --write`."""

# ruff: noqa
# fmt: off

import jax
from jax.typing import ArrayLike

'''
OWN_TYPES = """
_Vector = ArrayLike | tuple[ArrayLike, ...]
_AnyTexture = TextureObject | BoundTexture
_Surface = SurfaceObject | SurfaceReference | Array
texture = TextureReference
surface = SurfaceReference

"""
ALIASES = ("texture", "surface")
# Annotations of functions that are made of declarations, by CUDA's types.
OF_NUMBERS = (*declared.VECTOR_TYPES, "unsigned int", "unsigned short")
ANNOTATIONS = {
    **dict.fromkeys((*OF_NUMBERS, "void*", "const void*"), "ArrayLike"),
    **dict.fromkeys(("float2", "float4", "T"), "_Vector"),
    **dict.fromkeys(("cudaArray_t", "cudaArray_const_t"), "Array"),
    "size_t": "int",
    "cudaMemcpyKind": "MemcpyKind | int",
    "cudaTextureObject_t": "_AnyTexture",
    "cudaSurfaceObject_t": "_Surface",
    "cudaSurfaceBoundaryMode": "SurfaceBoundaryMode | int",
}


def is_made(name):
    """Whether a declaration alone makes the function, so that no `def` says its parameters."""
    return name in DECLARATIONS and not hasattr(getattr(cuda, name), "__wrapped__")


def stub():
    underscored = [name for name in cuda.__all__ if name.startswith("__")]
    made = [name for name in cuda.__all__ if is_made(name)]
    imported = sorted(set(cuda.__all__) - {*made, *underscored, *ALIASES})
    aliases = [f"{name} = {name[2:]}\n" for name in underscored]
    aliases += [f"{name} = {here}\n" for name, here in WITH_PREFIX.items()]
    return "".join([HEAD, *imports(imported), OWN_TYPES, *map(function, made), "\n", *aliases])


def imports(names):
    """The lines that import names from the modules that define them."""
    module_of = lambda name: getattr(getattr(cuda, name), "__module__", "jaxtex.cuda.kinds").removeprefix("jaxtex.cuda")
    for module, group in itertools.groupby(sorted(names, key=lambda name: (module_of(name), name)), key=module_of):
        listed = ", ".join(f"{name}_as_{name}" for name in group)
        lines = textwrap.fill(f"from {module} import ({listed})", WIDTH, subsequent_indent="    ")
        yield lines.replace("_as_", " as ") + "\n"


def function(name):
    """A function that is made of a declaration, with the first line of its docstring."""
    value, types = getattr(cuda, name), {p.name: p.type for p in DECLARATIONS[name].parameters}
    signature, parameters = inspect.signature(value), []
    for parameter in signature.parameters.values():
        option = parameter.kind is parameter.KEYWORD_ONLY
        annotation = "str | None" if option else ANNOTATIONS[types[parameter.name]]
        default = "" if parameter.default is parameter.empty else f" = {shown(parameter.default)}"
        parameters += [*(["*"] if option else []), f"{parameter.name}: {annotation}{default}"]
    result = signature.return_annotation.__name__
    result = result if getattr(cuda, result, None) is signature.return_annotation else "jax.Array"
    first = inspect.getdoc(value).splitlines()[0]
    return f'def {name}({", ".join(parameters)}) -> {result}: """{first}"""\n'


def shown(default):
    return f"{type(default).__name__}.{default.name}" if hasattr(default, "name") else repr(default)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.house.cuda_names", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the stub; without it, say whether it differs")
    write, text = parser.parse_args().write, stub()
    if not STUB.exists() or STUB.read_text() != text:
        print("wrote" if write else "differs:", STUB.relative_to(ROOT))
    if write:
        STUB.write_text(text)


if __name__ == "__main__":
    main()
