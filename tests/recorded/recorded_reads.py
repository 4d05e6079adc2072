"""The reads recorded on a real texture unit (tests/data), as the library is asked for them."""

import dataclasses
import functools
import json

import jax
import numpy as np

import jaxtex as jt
from tests.support import recordings
from tests.support.compiling import by_default

data = functools.partial(recordings.arrays, "texture_unit")
MODES = ("wrap", "clamp", "mirror", "border")
FILTERS = ("point", "linear")
READ_MODES = ("element", "normalized_float")
PLAIN, LOD, GRAD, GATHER = range(4)
FORMATS = (np.float32, np.uint8, np.int8, np.uint16, np.int16, np.float16, np.uint32, np.int32)
# How many filtered axes a shape has, and what builds it.
KINDS = {
    1: (1, jt.texture1d),
    2: (2, jt.texture2d),
    3: (3, jt.texture3d),
    6: (2, jt.cubemap),
    11: (1, jt.texture1d_layered),
    12: (2, jt.texture2d_layered),
    16: (2, jt.cubemap_layered),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One texture, read at many places in one way."""

    number: int
    record: dict

    def __str__(self):
        return f"{self.group}-{self.number}"

    def array(self, name):
        """One of the arrays of this case, or None."""
        return data().get(f"{self.number}/{name}")

    @property
    def group(self):
        return self.record["group"]

    @property
    def dimension(self):
        return KINDS[self.record["shape"]][0]

    @property
    def cube(self):
        return self.record["shape"] in (6, 16)

    @property
    def gather(self):
        return self.record["op"] == GATHER

    @property
    def footprints(self):
        """Whether derivatives choose the level."""
        return self.record["op"] == GRAD

    @property
    def sizes(self):
        """Of the filtered axes, x first."""
        return tuple(self.record[k] for k in "whd"[: self.dimension])

    @functools.cached_property
    def levels(self):
        """The texels, one array a level, as the library takes them."""
        if self.record["ramp"]:
            stored = [ramp(self.record["ramp"], self.record["w"])]
        else:
            stored = [self.array(f"level{k}") for k in range(self.record["levels"])]
        if self.record["shape"] == 16:
            stored = [level.reshape(-1, 6, *level.shape[1:]) for level in stored]
        return tuple(stored)

    @property
    def texels(self):
        """The finest level."""
        return self.levels[0]

    @property
    def coords(self):
        return split(self.array("coords"))

    @property
    def layer(self):
        return self.array("layer")

    @property
    def out(self):
        """What the texture unit returned, (n, 4)."""
        return self.array("out")

    @property
    def border(self):
        """The border color. Integers read as elements take the low bits of the float's word."""
        color, stored = np.array(self.record["border"], np.float32), np.dtype(FORMATS[self.record["fmt"]])
        if self.read_mode == "element" and stored.kind in "iu":
            return color.view(np.uint32).astype(f"u{stored.itemsize}").view(stored)
        return color

    @property
    def border_color(self):
        return self.border if self.border.any() else None

    @property
    def normalized(self):
        return bool(self.record["normalized"])

    @property
    def declared_modes(self):
        return tuple(MODES[self.record[f"addr{k}"]] for k in range(self.dimension))

    @property
    def modes(self):
        """CUDA reads wrap and mirror as clamp when coordinates are in texels."""
        return tuple(m if self.normalized or m == "border" else "clamp" for m in self.declared_modes)

    @property
    def filter(self):
        return FILTERS[self.record["filter"]]

    @property
    def read_mode(self):
        return READ_MODES[self.record["readmode"]]

    @property
    def component(self):
        return self.record["comp"]

    def sampler(self, arithmetic):
        r = self.record
        return jt.Sampler(
            address_mode=self.modes,
            filter_mode=self.filter,
            read_mode=self.read_mode,
            normalized_coords=self.normalized,
            srgb=bool(r["srgb"]),
            mipmap_filter_mode=FILTERS[r["mipfilter"]],
            mipmap_level_bias=r["bias"],
            min_mipmap_level_clamp=r["minl"],
            max_mipmap_level_clamp=r["maxl"],
            max_anisotropy=max(r["aniso"], 1),
            seamless_cubemap=bool(r["seamless"]),
            arithmetic=arithmetic,
        )

    def operands(self):
        """All arrays that a read takes: levels, border color, coordinates, and the optional ones by name."""
        options = {"layer": self.layer, "lod": self.array("lod")}
        options |= {name: split(self.array(stored)) for name, stored in (("ddx", "gx"), ("ddy", "gy"))}
        return self.levels, self.border_color, self.coords, {k: v for k, v in options.items() if v is not None}

    def read(self, levels, border_color, coords, options, arithmetic):
        """The read, as a function of `operands`."""
        build = KINDS[self.record["shape"]][1]
        texture = build(levels if len(levels) > 1 else levels[0], border_color=border_color)
        if self.gather:
            return jt.gather(texture, coords, self.sampler(arithmetic), component=self.component)
        return jt.sample(texture, coords, self.sampler(arithmetic), **options)


def split(array):
    """The columns of an array, x first."""
    return None if array is None else tuple(array.T)


@functools.cache
def ramp(kind, size):
    """Texels that tell where they are. 1: texel i tells i, in parts that few bits hold; 2: face, x and y of a cube."""
    if kind == 1:
        i = np.arange(size)
        return np.stack([i, i % 251, i * 7 % 101, np.ones_like(i)], axis=-1).astype(np.float32)
    texels = np.zeros((6, size, size, 4), np.float32)
    for channel, axis in enumerate((0, 2, 1)):
        texels[..., channel] = np.arange(texels.shape[axis]).reshape(*[-1 if k == axis else 1 for k in range(3)])
    return texels


def read_all(cases, arithmetic):
    """What the library returns for each case, by one program that is compiled as users compile it.

    Cases that differ in nothing but the contents of their arrays take turns in it.
    """
    alike = {}
    for case in cases:
        shapes = jax.tree.map(lambda a: (a.shape, a.dtype), case.operands())
        key = (case.sampler(arithmetic), case.record["shape"], case.record["op"], case.component, repr(shapes))
        alike.setdefault(key, []).append(case)
    rows, results = list(alike.values()), {}
    read = lambda operands: [row[0].read(*o, arithmetic) for row, o in zip(rows, operands)]
    program = jax.jit(read, compiler_options=by_default())
    for turn in range(max(map(len, rows))):
        turned = [row[min(turn, len(row) - 1)] for row in rows]
        values = jax.device_get(program([case.operands() for case in turned]))
        results.update((case.number, value) for case, value in zip(turned, values))
    return [results[case.number] for case in cases]


def recorded_cases(recording=None):
    """The cases of one recording, or of both."""
    records = json.loads(bytes(data()["index"]))
    return [Case(k, r) for k, r in enumerate(records) if recording in (None, r["recording"])]
