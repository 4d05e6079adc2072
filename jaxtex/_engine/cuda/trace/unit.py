"""Reads by the texture unit as statements of a thread: the `tex` instructions of PTX.

A texture object is destroyed when nobody holds the texture. A slot in memory, which outlives it, says whether it still
exists, and has another object of the same kind that a thread reads if not: its texels are NaN, or 0.
"""

from jax.extend.core import JaxprEqn

import numpy as np

from ....modes import TextureKind
from ...describe.unit import UnitRead
from .numbers import Rule
from .statements import Names, Statements, of_each

# For each kind, its name in PTX, and the address: a layer is `l`, the coordinates `x`, `y` and `z`; PTX ignores some.
ADDRESSES = {
    TextureKind.TEXTURE1D: ("1d", "x"),
    TextureKind.TEXTURE2D: ("2d", "xy"),
    TextureKind.TEXTURE3D: ("3d", "xyzz"),
    TextureKind.TEXTURE1D_LAYERED: ("a1d", "lx"),
    TextureKind.TEXTURE2D_LAYERED: ("a2d", "lxyy"),
    TextureKind.CUBEMAP: ("cube", "xyzz"),
    TextureKind.CUBEMAP_LAYERED: ("acube", "lxyz"),
}
COMPONENTS = "rgba"
# What a slot holds is laid out in `jaxtex._unit.objects`.
OBJECT_OF = """// The texture object that a handle names.
DEVICE uint64 texture_object(uint32 low, uint32 high, uint32 generation) {
  const uint32* slot = (const uint32*)(((uint64)high << 32) | low);
  const Row<uint32, 4> kept = load_aligned_row<4>(slot), other = load_aligned_row<4>(slot + 4);
  const bool lives = kept.v[2] == generation;
  return (uint64)(lives ? kept.v[1] : other.v[1]) << 32 | (lives ? kept.v[0] : other.v[0]);
}
"""
# All threads have the same handles. Those of a texture that no texture unit has are zeros.
IS_BOUND = "if (!({0} | {1})) return;"


def text_of(read: UnitRead, name: str) -> str:
    """The device function `name`, which reads by a texture object."""
    geometry, address = ADDRESSES[read.kind]
    ndim = read.kind.ndim
    c_type, code = ("float", "f32") if read.dtype.kind == "f" else ("int", "s32") if read.dtype.kind == "i" else ("uint32", "u32")
    outputs, registers = "{%0, %1, %2, %3}", iter(range(5, 20))
    # The operands of the instruction, in the order of the numbers.
    names = [*"xyz"[:ndim], *("l" if read.kind.layered else "")]
    if read.level == "level":
        names.append("lod")
    elif read.level == "grad":
        names += [f"d{axis}d{side}" for side in "xy" for axis in "xyz"[:ndim]]
    at = {n: f"%{next(registers)}" for n in names}
    place = f"[%4, {{{', '.join(at[c] for c in address)}}}]"
    if read.component is not None:
        operation = f"tld4.{COMPONENTS[read.component]}.2d.v4.{code}.f32 {outputs}, {place};"
    else:
        more = {"level": f", {at.get('lod')}", "level zero": ", 0f00000000"}.get(read.level, "")
        if read.level == "grad":
            sides = [[at[f"d{axis}d{side}"] for axis in "xyz"[:ndim]] for side in "xy"]
            more = "".join(f", {{{', '.join(side + side[-1:] * (ndim == 3))}}}" for side in sides)
        dot = f".{read.level.split()[0]}" if read.level else ""
        operation = f"tex{dot}.{geometry}.v4.{code}.f32 {outputs}, {place}{more};"
    type_of = lambda n: "int" if n == "l" else "float"
    results = ", ".join(f'"={"f" if c_type == "float" else "r"}"(row.v[{k}])' for k in range(4))
    inputs = ", ".join(f'"{"r" if n == "l" else "f"}"({n})' for n in names)
    parameters = ", ".join(f"{type_of(n)} {n}" for n in names)
    return (
        f"DEVICE Row<{c_type}, 4> {name}(uint64 object, {parameters}) {{\n"
        f"  Row<{c_type}, 4> row;\n"
        "#ifdef __CUDACC__\n"
        f'  asm("{operation}" : {results} : "l"(object), {inputs});\n'
        "#endif\n"
        f"  return row;\n}}\n"
    )


def unit_read(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    read: UnitRead = eqn.params["read"]
    handle, *numbers = args
    statements.functions.setdefault("texture_object", OBJECT_OF)
    name = "_".join(filter(None, ("read", read.level.replace(" ", "_"), read.kind.name.lower(), read.dtype.kind, str(read.component or ""))))
    statements.functions.setdefault(name, text_of(read, name))
    wide = np.dtype({"f": np.float32, "i": np.int32, "u": np.uint32}[read.dtype.kind])
    c_type = {"f": "float", "i": "int", "u": "uint32"}[read.dtype.kind]
    is_bound = IS_BOUND.format(*handle)
    if is_bound not in statements.defined:
        statements.lines.append(is_bound)
        statements.defined["", is_bound] = ""
    found = statements.define(np.uint64, f"texture_object({', '.join(map(str, handle))})")
    row_of = lambda *at: statements.define_typed(f"Row<{c_type}, 4>", f"{name}({found}, {', '.join(map(str, at))})")
    rows = of_each(row_of, numbers)
    channels = [
        of_each(lambda row, k=k: statements.define(wide, f"{row}.v[{k}]"), [rows]) for k in range(read.num_channels)
    ]
    return statements.converted(np.stack(channels, -1), wide, read.dtype)


UNIT: dict[str, Rule] = {"unit_read": unit_read}
