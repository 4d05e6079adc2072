"""The tables of CUDA's names on the pages `api/cuda-names` and `api/cuda-absent`, made of `jaxtex.cuda`."""

import dataclasses
from typing import Any

from jaxtex import cuda
from jaxtex.cuda import declarations as declared
from jaxtex.cuda.declarations import DECLARATIONS
from jaxtex.cuda.descriptors import UNION_MEMBERS
from jaxtex.cuda.names import ABSENT, ENUMERATIONS, STRUCTS, TYPES

TABLE = "\n## {}\n\n| CUDA | here | |\n|---|---|---|\n"
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
    """All tables, as Markdown."""
    text = []
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
    return "".join(text)


def absent():
    """The table of families of names that are not here, as Markdown."""
    text = ["\n| CUDA | instead |\n|---|---|\n"]
    for sentence, families in grouped(ABSENT, ABSENT.get):
        names = " ".join(families).split()
        text.append(f"| {', '.join(f'`{name}`' for name in names)} | {sentence} |\n")
    return "".join(text)


PAGES = {"api/cuda-names": tables, "api/cuda-absent": absent}


def add_tables(app: Any, page: str, source: list[str]) -> None:
    if page in PAGES:
        source[0] += PAGES[page]()


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", add_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
