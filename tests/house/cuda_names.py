"""`python -m tests.house.cuda_names --write`: what is made of the declarations of `jaxtex.cuda`.

That is its stub for type checkers, `jaxtex/cuda/__init__.pyi`, and the tables of all names at the end of
`docs/porting-cuda.md`. Without `--write` it says whether they are as they should be.
"""

import argparse
import dataclasses
import inspect
import itertools
import textwrap
from pathlib import Path

from jaxtex import cuda
from jaxtex.cuda import declarations as declared
from jaxtex.cuda.declarations import DECLARATIONS
from jaxtex.cuda.memory.resource_descriptor import UNION_MEMBERS
from jaxtex.cuda.names import ENUMERATIONS, IMPOSSIBLE, STRUCTS, TYPES

ROOT = Path(__file__).parents[2]
STUB = ROOT / "jaxtex" / "cuda" / "__init__.pyi"
PAGE = ROOT / "docs" / "porting-cuda.md"
HEADING = "## Every name\n"
WIDTH = 120

# The stub

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
    """The text of the stub."""
    underscored = [name for name in cuda.__all__ if name.startswith("__")]
    made = [name for name in cuda.__all__ if is_made(name)]
    imported = sorted(set(cuda.__all__) - {*made, *underscored, *ALIASES})
    aliases = [f"{name} = {name[2:]}\n" for name in underscored]
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
    return f'def {name}({", ".join(parameters)}) -> {result}:\n    """{first}"""\n'


def shown(default):
    return f"{type(default).__name__}.{default.name}" if hasattr(default, "name") else repr(default)


# The tables

INTRODUCTION = """
These tables list the functions, fields, flags and enumerators of CUDA's texture and surface interface. **Same** means
the same arguments in the same order with the same defaults and errors. Pointers to results are left out; results are
returned. Names with the prefix work too: `cuda.cudaMallocArray` is `cuda.mallocArray`, and `cuda.cudaAddressModeWrap`
is `cuda.AddressMode.Wrap`.

<!-- The tables are made by `python -m tests.house.cuda_names --write`. -->
"""
TABLE = "\n### {}\n\n| CUDA | here | |\n|---|---|---|\n"
FUNCTIONS = {
    "Functions of the host": (*declared.RUNTIME, *declared.STRUCTS),
    "Texture and surface references": (*declared.TEXTURE_REFERENCES, *declared.SURFACE_REFERENCES),
    "Texture functions": [name for name in DECLARATIONS if name.startswith("tex")],
    "Surface functions": [name for name in DECLARATIONS if name.startswith("surf")],
    "Instructions of PTX": declared.PTX,
    "Vectors and conversions": [name for name in DECLARATIONS if name in declared.INTRINSICS or "make_" in name[:5]],
}
FUNCTIONS["Vectors and conversions"] = [n for n in FUNCTIONS["Vectors and conversions"] if n not in declared.STRUCTS]
PYTREE, NO_EFFECT = "a pytree, not a handle", "no effect"
OF_JAX = "checked, but without effect: all memory is JAX's"
KEYWORD = "`None` is a keyword of Python"
TYPE_NOTES = {
    "Array": "an immutable value, a pytree",
    "MipmappedArray": "an immutable value, a pytree",
    "TextureObject": PYTREE,
    "SurfaceObject": PYTREE,
    "Error": "an exception, `CudaError`, with `.code` and `.name`",
}
# How fields and enumerators differ from CUDA's.
NOTES = {
    "TextureDesc.disableTrilinearOptimization": NO_EFFECT,
    "TextureReference.disableTrilinearOptimization": NO_EFFECT,
    "SurfaceReference.channelDesc": NO_EFFECT,
    "PitchedPtr.ptr": "an array of any dtype; its bytes, in C order, are the memory",
    "Memcpy3DParms.kind": OF_JAX,
    **{f"MemcpyKind.{member.name}": OF_JAX for member in cuda.MemcpyKind},
    "ArrayFlags.ColorAttachment": "accepted, but without effect",
    "ArrayFlags.DeferredMapping": "accepted, but without effect",
    "ArrayFlags.Sparse": "every texel is resident",
    "ChannelFormatKind.None_": KEYWORD,
    "ResourceViewFormat.None_": KEYWORD,
    "SurfaceBoundaryMode.Trap": "acts as Zero, and raises an error under `jax.experimental.checkify`",
    "ArrayFlags.VideoEncodeDecode": "only the driver API has a name, `CUDA_ARRAY3D_VIDEO_ENCODE_DECODE`",
}
UNION = [f"res.{member}.{field}" for member, fields in UNION_MEMBERS.items() for field in fields]
# Fields of CUDA's structs that are no fields here: the struct, the fields, and what stands for them.
OTHER_FIELDS = (
    (
        "cudaResourceDesc",
        UNION,
        [f"ResourceDesc.{field}" for field in UNION],
        "`devPtr` is an array; constructors such as `ResourceDesc.Array(a)` fill in the rest",
    ),
    ("cudaResourceViewDesc", ["reserved"], ["ResourceViewDesc"], "there is no such field; CUDA wants zeros"),
)
REFERENCES = {"textureReference": cuda.TextureReference("float"), "surfaceReference": cuda.SurfaceReference()}
RESIDENT = "leave out `isResident`: every texel is resident"


def row(names, here, differs, within=""):
    """A row of a table."""
    listed = ", ".join(f"`{name}`" for name in names)
    shown = "the same names" if [*names] == [*here] and len(here) > 1 else ", ".join(f"`{name}`" for name in here)
    return f"| {listed}{within} | {shown} | {f'different: {differs}' if differs else 'same'} |\n"


def grouped(names, note):
    """Names with the same note, in the order of the first of each."""
    groups = {}
    for name in names:
        groups.setdefault(note(name), []).append(name)
    return groups.items()


def in_cuda(name):
    """The name that a function has in CUDA."""
    if name in declared.PTX:
        return name.replace("_", ".")
    return DECLARATIONS[name].text.split("(")[0].removesuffix("<T>").split()[-1]


def also(name):
    return [name, f"__{name}"] if name in declared.INTRINSICS else [name]


def tables():
    """The section of the page."""
    text = [INTRODUCTION]
    for title, names in FUNCTIONS.items():
        text.append(TABLE.format(title))
        for differs, group in grouped(names, lambda name: DECLARATIONS[name].differs):
            text.append(row([in_cuda(name) for name in group], [n for name in group for n in also(name)], differs))
        if title == "Texture functions":
            sparse = [name for name in names if declared.RESIDENT in DECLARATIONS[name].text or name == "tex2Dgather"]
            text.append(row([f"{name}(..., bool* isResident)" for name in sparse], sparse, RESIDENT))
            text.append(row(["void tex2D(T* out, ...)"], ["tex2D"], "the value is returned", " and the like"))
        if title.endswith("references"):
            classes = "an object, which functions take as an argument"
            text.append(
                row(["texture<T, texType, readMode>"], ["texture", "TextureReference", "BoundTexture"], classes)
            )
            text.append(row(["surface<void, Type>"], ["surface", "SurfaceReference"], classes))
    text.append(TABLE.format("Types and their fields"))
    for here, names in grouped(TYPES, TYPES.get):
        text.append(row(names, [here, *(["CudaError"] if here == "Error" else [])], TYPE_NOTES.get(here, "")))
    structs = {f"cuda{name}": getattr(cuda, name)() for name in STRUCTS} | REFERENCES
    for struct, value in structs.items():
        kind = type(value).__name__
        own = ("T", "Type", "texType", "readMode", "array") if struct in REFERENCES else ("memory",)
        fields = [field.name for field in dataclasses.fields(value) if field.name not in own]
        if struct == "cudaResourceDesc":
            fields = ["resType", "flags"]
        for differs, group in grouped(fields, lambda field, kind=kind: NOTES.get(f"{kind}.{field}", "")):
            text.append(row(group, [f"{kind}.{field}" for field in group], differs, f" of `{struct}`"))
    for struct, fields, here, differs in OTHER_FIELDS:
        text.append(row(fields, here, differs, f" of `{struct}`"))
    text.append(TABLE.format("Flags and enumerators"))
    for prefix, enumeration in ENUMERATIONS.items():
        members = [name for name in enumeration.__members__ if (prefix != "cuda") == (name != "Success")]
        kind = enumeration.__name__
        for differs, group in grouped(members, lambda member, kind=kind: NOTES.get(f"{kind}.{member}", "")):
            names = [f"{prefix}{member.rstrip('_')}" for member in group]
            text.append(row(names, [f"{kind}.{member}" for member in group], differs))
    text.append(TABLE.format("Names without a counterpart"))
    for reason, group in grouped(IMPOSSIBLE, IMPOSSIBLE.get):
        text.append(f"| {', '.join(f'`{name}`' for name in group)} | | impossible in a pure function: {reason} |\n")
    return "".join(text)


def page():
    """The text of the page with its tables."""
    return PAGE.read_text().partition(HEADING)[0] + HEADING + tables()


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.house.cuda_names", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write both; without it, say which differ")
    write = parser.parse_args().write
    for path, text in ((STUB, stub()), (PAGE, page())):
        if not path.exists() or path.read_text() != text:
            print("wrote" if write else "differs:", path.relative_to(ROOT))
        if write:
            path.write_text(text)


if __name__ == "__main__":
    main()
