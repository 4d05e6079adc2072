"""Reads by the texture unit as statements of a thread: the `tex` instructions of PTX.

A texture object is destroyed when nobody holds the texture. A slot in memory, which outlives it, says whether it still
exists, and has another object of the same kind that a thread reads if not: its texels are NaN, or 0.
"""

import numpy as np
from jax.extend.core import JaxprEqn

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
# A handle of zeros names no object: the texture was bound where there is no texture unit. All threads return then.
IS_BOUND = "if (!({0} | {1})) return;"
# By the kind of dtype of a result: its type in C, in PTX, the letter of its registers, and the dtype.
RESULTS = {
    "f": ("float", "f32", "f", np.float32),
    "i": ("int", "s32", "r", np.int32),
    "u": ("uint32", "u32", "r", np.uint32),
}


def text_of(read: UnitRead, name: str) -> str:
    """The device function `name`, which reads by a texture object."""
    geometry, address = ADDRESSES[read.kind]
    c_type, code, letter, _ = RESULTS[read.dtype.kind]
    axes = "xyz"[: read.kind.ndim]
    # The parameters, in the order of the numbers. Registers 0 to 3 are the result, and 4 is the object.
    names = [*axes, *("l" if read.kind.layered else "")]
    names += {"level": ["lod"], "grad": [f"d{axis}d{side}" for side in "xy" for axis in axes]}.get(read.level, [])
    at = {parameter: f"%{k}" for k, parameter in enumerate(names, 5)}
    # The instruction: of a gather, with a footprint, with a level, or without either.
    result, place = "{%0, %1, %2, %3}", f"[%4, {{{', '.join(at[c] for c in address)}}}]"
    if read.component is not None:
        operation = f"tld4.{COMPONENTS[read.component]}.2d.v4.{code}.f32 {result}, {place}"
    elif read.level == "grad":
        sides = ([at[f"d{axis}d{side}"] for axis in (axes + axes[-1:] * (len(axes) == 3))] for side in "xy")
        operation = f"tex.grad.{geometry}.v4.{code}.f32 {result}, {place}, " + ", ".join(
            f"{{{', '.join(side)}}}" for side in sides
        )
    elif read.level:
        level = at["lod"] if read.level == "level" else "0f00000000"
        operation = f"tex.level.{geometry}.v4.{code}.f32 {result}, {place}, {level}"
    else:
        operation = f"tex.{geometry}.v4.{code}.f32 {result}, {place}"
    # The operands of the `asm` statement, in the order of the registers.
    letters = {parameter: ("int", "r") if parameter == "l" else ("float", "f") for parameter in names}
    outputs = ", ".join(f'"={letter}"(row.v[{k}])' for k in range(4))
    inputs = ", ".join(f'"{register}"({parameter})' for parameter, (_, register) in letters.items())
    parameters = ", ".join(f"{c_type_of_one} {parameter}" for parameter, (c_type_of_one, _) in letters.items())
    return (
        f"DEVICE Row<{c_type}, 4> {name}(uint64 object, {parameters}) {{\n"
        f"  Row<{c_type}, 4> row;\n"
        "#ifdef __CUDACC__\n"
        f'  asm("{operation};" : {outputs} : "l"(object), {inputs});\n'
        "#endif\n"
        "  return row;\n}\n"
    )


def unit_read(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    """The values of a read, of each sample."""
    read: UnitRead = eqn.params["read"]
    (low, high, generation), *numbers = args
    c_type, *_, dtype = RESULTS[read.dtype.kind]
    what = f"gather_{read.component}" if read.component is not None else read.level.replace(" ", "_")
    name = f"read_{read.kind.name.lower()}_{what or 'finest'}_{read.dtype.kind}"
    statements.functions.setdefault("texture_object", OBJECT_OF)
    statements.functions.setdefault(name, text_of(read, name))
    is_bound = IS_BOUND.format(low, high)
    if ("", is_bound) not in statements.defined:
        statements.lines.append(is_bound)
        statements.defined["", is_bound] = ""
    found = statements.define(np.uint64, f"texture_object({low}, {high}, {generation})")
    row_of = lambda *at: statements.define_typed(f"Row<{c_type}, 4>", f"{name}({found}, {', '.join(map(str, at))})")
    rows = of_each(row_of, numbers)
    channel = lambda k: of_each(lambda row: statements.define(dtype, f"{row}.v[{k}]"), [rows])
    return statements.converted(np.stack([*map(channel, range(read.num_channels))], -1), dtype, read.dtype)


UNIT: dict[str, Rule] = {"unit_read": unit_read}
