"""What random calls of the public interface are drawn from: a seed and a kind are a call, with its arguments."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

import jaxtex as jt
from jaxtex import TextureKind
from jaxtex.texture import AXIS_NAMES, chain_shapes
from tests.fuzz.draws import chance, pick

FLOATS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
DTYPES = [*["float32"] * 8, "float16", "bfloat16", "uint8", "int8", "uint16", "int16", "bool"]
CHANNELS = [*range(1, 10), 1, 2, 3, 4, 16, 20, 64]
MODES = ["clamp", "border", "wrap", "mirror", "reflect"]
FILTERS = [
    {"filter_mode": "cubic"},
    {"filter_mode": "cubic", "cubic_coefficient": -0.75},
    *({"filter_mode": "bspline", "spline_order": order} for order in (2, 3, 5)),
    *({"filter_mode": name} for name in ("lanczos2", "lanczos3", "mitchell", "gaussian")),
]
SPECIAL = [0, -0.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 2.0**24]
MOST_SAMPLES = 1500
# Positions are multiples of 1/64 of a texel and half of that: no rounding moves one past a texel's edge or center.
STEP = 64
# How much more a gradient's sum of terms may differ from its largest value than a single read.
SUMS = 4


class Unsuitable(Exception):
    """A call that jaxtex refuses."""


@dataclasses.dataclass
class Case:
    """A call.

    Attributes:
        text: what it is.
        function: maps the inputs, by name, to the result.
        inputs: arrays of NumPy.
        wrt: the names of inputs with a gradient.
        exact: whether the value has the same bits in every form.
        steady: whether no rounding changes which texels a sample reads.
        reach: how many roundings of a position below 32 texels its position may hold.
        floors: by name of an input, and "value": below which magnitude differences do not count.
        forward: whether to take the tangent, in place of gradients.
        deterministic: whether another run has the same bits.
        sums: whether the value is a sum over samples.
        meaning: maps the inputs to the same value in another way, if there is one.
    """

    text: str
    function: Callable
    inputs: dict
    wrt: tuple
    exact: bool = False
    steady: bool = False
    reach: float = 1.0
    floors: dict = dataclasses.field(default_factory=dict)
    forward: bool = False
    deterministic: bool = False
    sums: bool = False
    meaning: Callable | None = None


def case_of(seed, draw):
    """The first call that jaxtex takes, among those that follow from a seed and the function that draws a kind."""
    for attempt in range(1000):
        rng = np.random.default_rng([seed, attempt])
        try:
            case = draw(rng)
            jax.eval_shape(case.function, **case.inputs)
            return dataclasses.replace(case, forward=chance(rng, 0.15))
        except (ValueError, TypeError) as error:
            if not str(error).split(":")[0].split(".")[-1].isidentifier():
                raise  # the messages of jaxtex begin with the name of a function
        except Unsuitable:
            pass
    raise AssertionError(f"no call for seed {seed}")


def stored(rng, dtype, *shape):
    """Texels of any dtype."""
    if dtype in FLOATS:
        return rng.normal(size=shape).astype(FLOATS[dtype])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def sizes_of(rng, ndim, channels):
    """The sizes of a level, often odd, sometimes 1."""
    most = {1: 200, 2: 40, 3: 11}[ndim] // (1 if channels < 10 else 2)
    return tuple(int(pick(rng, [1, 2, 3, most]) if chance(rng, 0.2) else rng.integers(1, most)) for _ in range(ndim))


def samples_of(rng, channels):
    """The shape of the samples: none, one, two or three axes."""
    most = MOST_SAMPLES if channels < 10 else MOST_SAMPLES // 4
    ndim = int(rng.choice(4, p=[0.04, 0.2, 0.56, 0.2]))
    shape = [int(rng.integers(1, max(2, int(most ** (1 / max(ndim, 1)) * 1.5)))) for _ in range(ndim)]
    return tuple(shape) if np.prod(shape) <= 2 * most else tuple(s // 2 + 1 for s in shape)


def positions_of(rng, sizes, shape):
    """Positions in texels, x first, and what they are."""
    pattern = pick(rng, ["smooth", "smooth", "random", "random", "lines", "identical", "special", "far"])
    extent = np.array(sizes[::-1], float)
    span = {"far": (-30, 31)}.get(pattern, (-0.4, 1.4))
    found = [rng.uniform(*span, shape) * n for n in extent]
    if pattern == "identical":
        found = [np.full(shape, rng.uniform(-0.2, 1.2) * n) for n in extent]
    elif pattern == "smooth" and shape:
        index = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)[..., ::-1] + 0.5
        slopes = rng.normal(size=(len(sizes), len(shape))) * pick(rng, [0.2, 0.7, 2])
        found = [n / 2 + (index - np.array(shape[::-1]) / 2) @ slope for n, slope in zip(extent, slopes)]
    elif pattern == "lines" and shape:
        short = lambda k, p: p[tuple(slice(1 if (k + axis) % 2 else None) for axis in range(p.ndim))]
        found = [short(k, p) for k, p in enumerate(found)]
    found = [np.floor(p * STEP) / STEP + 0.5 / STEP for p in found]
    if pattern == "special":
        found = [np.where(rng.random(shape) < 0.15, rng.choice(SPECIAL, shape), p) for p in found]
    return found, pattern


def divisible(position, scale):
    """Positions with 1e30 in place of 2^24, which comes back from a division by the scale as another whole number."""
    return position if scale == 1 else np.where(np.abs(position) == 2.0**24, 1e30, position)


def reach_of(positions):
    finite = [np.abs(p[np.isfinite(p) & (np.abs(p) < 1e6)]).max(initial=0) for p in positions]
    return 1 + max(finite, default=0) / 32


def along(axes, names, function):
    """`function` of named arrays under `vmap` over those that are in `axes`."""

    def run(**inputs):
        one = lambda *args: function(**dict(zip(names, args)))
        return jax.vmap(one, [0 if n in axes else None for n in names])(*(inputs[n] for n in names))

    return run


# What a call holds


class Draw:
    """The parts of a read or a splat, drawn one after the other."""

    def __init__(self, rng):
        kinds = [*["2d"] * 5, "1d", "3d", "3d", "1d_layered", "2d_layered", "cubemap", "cubemap_layered"]
        self.rng, self.kind = rng, TextureKind(pick(rng, kinds))
        self.dtype, self.channels = pick(rng, DTYPES), pick(rng, CHANNELS)
        self.filter = pick(rng, ["point", "linear", "linear", "linear", "cubic"])
        self.chain, self.footprint = chance(rng, 0.2), chance(rng, 0.2)
        self.fraction = self.dtype not in FLOATS and self.dtype != "bool" and chance(rng, 0.7)
        modes = [pick(rng, MODES) for _ in range(self.kind.texel_ndim)]
        self.modes = tuple(modes) if chance(rng, 0.3) else (modes[0],) * len(modes)
        options = {
            "filter_mode": self.filter,
            "normalized_coords": self.chain or self.kind.is_cube or chance(rng, 0.7),
            "read_mode": "normalized_float" if self.fraction else "element",
            "srgb": self.fraction and self.dtype == "uint8" and chance(rng, 0.4),
            "mipmap_filter_mode": pick(rng, ["point", "linear", "linear"]) if self.chain else "point",
            "mipmap_level_bias": pick(rng, [0.0, 0.0, 0.25]),
            "max_anisotropy": pick(rng, [1, 2, 5, 8, 16]) if self.footprint else 1,
            "arithmetic": "hardware" if chance(rng, 0.35) else "float",
            "deterministic": chance(rng, 0.15),
        }
        if not self.kind.is_cube or chance(rng, 0.3):
            options["address_mode"] = self.modes
            options["seamless_cubemap"] = not self.kind.is_cube
        on_sphere = self.kind.ndim == 2 and options["arithmetic"] == "float" and chance(rng, 0.1)
        if on_sphere:
            options["address_mode"] = self.modes = ("sphere",) * 2
        self.sampler = jt.Sampler(**options)
        self.options = {k: v for k, v in options.items() if v != getattr(jt.Sampler(deterministic=False), k)}
        self.batch = pick(rng, [None, None, None, "texture", "coordinates", "both"])
        self.sizes = sizes_of(rng, self.kind.texel_ndim, self.channels)
        if self.kind.is_cube:
            self.sizes = (min(self.sizes[0], 9),) * 2
        if on_sphere:
            self.sizes = (self.sizes[0], self.sizes[1] + self.sizes[1] % 2)
        front = [int(rng.integers(1, 5))] * self.kind.layered + [6] * self.kind.is_cube
        self.shape = (*front, *self.sizes, self.channels)
        assert len(self.shape) == len(AXIS_NAMES[self.kind]) + 1
        self.samples = samples_of(rng, self.channels)
        self.count = int(rng.integers(2, 4)) if self.batch else 1
        self.levels = tuple(chain_shapes(self.kind, self.shape, None, "sample")) if self.chain else None
        self.levels = self.levels if self.levels and len(self.levels) > 1 else None

    def stacked(self, what, make):
        """An array, or as many as the batch has if `what` is batched."""
        if self.batch not in (what, "both"):
            return make()
        return np.stack([make() for _ in range(self.count)])

    @property
    def stored_shape(self):
        if self.levels is None:
            return self.shape
        return sum(int(np.prod(level[:-1])) for level in self.levels), self.channels

    def places(self):
        """The arrays that say where to read, by name; and whether no rounding matters to them."""
        rng, kind = self.rng, self.kind
        each = self.count if self.batch in ("coordinates", "both") else 1
        if kind.is_cube:
            drawn = [(list(rng.normal(size=(3, *self.samples))), "directions") for _ in range(each)]
        else:
            drawn = [positions_of(rng, self.sizes, self.samples) for _ in range(each)]
        patterns = {pattern for _, pattern in drawn}
        if len({tuple(p.shape for p in positions) for positions, _ in drawn}) > 1:
            raise Unsuitable
        self.reach = max(reach_of(positions) for positions, _ in drawn)
        scaled = [1.0] * kind.ndim
        if self.sampler.normalized_coords and not kind.is_cube:
            scaled = [float(n) for n in self.sizes[::-1]]
        self.scaled = scaled
        found = {}
        for k in range(kind.ndim):
            parts = [(divisible(positions[k], scaled[k]) / scaled[k]).astype(np.float32) for positions, _ in drawn]
            found[f"c{k}"] = np.stack(parts) if self.batch in ("coordinates", "both") else parts[0]
        of_samples = lambda make: self.stacked("coordinates", make)
        if kind.layered:
            found["layer"] = of_samples(lambda: rng.integers(-1, self.shape[0] + 1, self.samples).astype(np.int32))
        if self.footprint:
            for side in ("ddx", "ddy", *["ddz"] * (kind.ndim == 3 and not kind.is_cube and chance(rng, 0.5))):
                for k in range(kind.ndim):
                    found[f"{side}{k}"] = of_samples(lambda k=k: self.side(k))
        elif self.levels is not None:
            found["lod"] = of_samples(self.lod)
        return found, " ".join(sorted(patterns)), not kind.is_cube and not self.footprint

    def side(self, k):
        sides = self.rng.normal(size=self.samples) * np.exp2(self.rng.uniform(-3, 3, self.samples)) / self.scaled[k]
        return (sides / (8 if self.kind.is_cube else 1)).astype(np.float32)

    def lod(self):
        lod = self.rng.uniform(-1, len(self.levels) + 0.5, self.samples)
        return (np.floor(lod * STEP) / STEP + 0.5 / STEP).astype(np.float32)

    def arguments(self, given):
        several = lambda name: tuple(given[f"{name}{k}"] for k in range(self.kind.ndim))
        found = {name: given[name] for name in ("layer", "lod") if name in given}
        return several("c"), found | {side: several(side) for side in ("ddx", "ddy", "ddz") if f"{side}0" in given}

    def floors(self, magnitude):
        slopes = {f"c{k}": magnitude * n for k, n in enumerate(self.scaled)}
        return {"value": magnitude, "lod": magnitude} | slopes

    def text(self, pattern):
        levels = f", {len(self.levels)} levels" if self.levels else ""
        batch = f", vmap over {self.batch}" if self.batch else ""
        return f"{self.kind} {self.dtype} {self.shape}{levels} at {pattern} {self.samples}{batch}, {self.options}"


def with_options(draw, **options):
    """A draw whose sampler has these options in place of its own."""
    draw.sampler = dataclasses.replace(draw.sampler, arithmetic="float", **options)
    draw.options = {k: v for k, v in draw.options.items() if k != "arithmetic"} | options
    draw.filter = draw.sampler.filter.value
    return draw


def finish(draw, name, function, arrays, inputs, wrt, magnitude, pattern, steady):
    axes = [*arrays] if draw.batch in ("texture", "both") else []
    axes += [*inputs] if draw.batch in ("coordinates", "both") else []
    whole = {**arrays, **inputs}
    return Case(
        text=f"{name} {draw.text(pattern)}" + (f", color {arrays['color'].shape}" if "color" in arrays else ""),
        function=along(axes, list(whole), function) if axes else function,
        inputs=whole,
        wrt=tuple(wrt),
        exact=draw.sampler.arithmetic == "hardware",
        steady=steady,
        reach=draw.reach,
        floors=draw.floors(magnitude),
        deterministic=draw.sampler.deterministic,
        sums="values" in arrays,
    )


def seeds_for(case, seed):
    """The cotangent of the result and the tangents of the inputs with a gradient."""
    rng = np.random.default_rng(seed)
    result = jax.eval_shape(case.function, **case.inputs)
    normal = lambda a: jnp.asarray(rng.normal(size=a.shape)).astype(a.dtype)
    return normal(result), {name: normal(case.inputs[name]) for name in case.wrt}
