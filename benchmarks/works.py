"""The works: what is measured, at which size, and which ratio over whom is the aim."""

import dataclasses
import itertools
from collections.abc import Callable

GROWTH = (256, 512, 1024, 2048, 4096, 8192)
LAUNCH = 256  # so few samples that a launch is most of the time
LABELS = {"2d": "2D", "3d": "3D", "cubemap": "cubemap"}
Scale = Callable[[int], int]  # from a size in the list below to one of this run


@dataclasses.dataclass(frozen=True)
class Target:
    """An aim: jaxtex's time over a peer's, on one kind of device."""

    peer: str
    ratio: float
    device: str = "gpu"


@dataclasses.dataclass(frozen=True)
class Work:
    """One row: a texture of `side` texels along each axis, read at `samples` points along each axis.

    Attributes:
        what: "read"; "gradients" of a read in all its floating inputs, the backward pass alone; "splat", the gradient
            in the texels alone; "slopes", those in the coordinates alone; "step", forward and gradients together;
            "build", the mip chain.
        kind: "2d", "3d" or "cubemap".
        coordinates: "rotated" by 0.5 rad, "random", a "panorama" of directions, all of them arrays; "generated" in
            the kernel by the rotation; "affine", generated from a matrix for each image of a batch.
        mips: a full chain, read between two levels, by a smooth level of detail for each sample.
        anisotropy: of a read of a chain: each footprint is so many texels long, and one wide.
    """

    what: str
    side: int
    samples: int
    channels: int = 4
    kind: str = "2d"
    dtype: str = "float32"
    coordinates: str = "rotated"
    address_mode: str = "clamp"
    filter_mode: str = "linear"
    arithmetic: str = "float"
    deterministic: bool = False
    mips: bool = False
    anisotropy: int = 0
    batch: int = 0
    section: str = dataclasses.field(default="", compare=False)
    targets: tuple[Target, ...] = dataclasses.field(default=(), compare=False)

    @property
    def dimensions(self) -> int:
        """How many filtered axes a level has."""
        return 3 if self.kind == "3d" else 2

    @property
    def backward(self) -> bool:
        """Whether there is a cotangent."""
        return self.what in ("gradients", "splat", "slopes", "step")

    @property
    def plain(self) -> "Work":
        """The same work as `Sampler()` does it, with coordinates from arrays."""
        coordinates = "rotated" if self.coordinates == "generated" else self.coordinates
        return dataclasses.replace(self, arithmetic="float", deterministic=False, coordinates=coordinates)

    @property
    def given(self) -> "Work":
        """The same work with coordinates from arrays, as libraries do it that cannot make them where they read."""
        return dataclasses.replace(self, coordinates=self.plain.coordinates)

    @property
    def name(self) -> str:
        square = lambda n, d=self.dimensions: "x".join([str(n)] * d)
        size, samples = square(self.side), square(self.samples)
        if self.batch:
            size = f"{self.batch} images {size}"
        elif self.what == "splat":
            size = f"{samples} into {size}"
        elif size != samples:
            size = f"{samples} of {size}"
        other = [
            self.dtype if self.dtype != "float32" else "",
            self.address_mode if self.address_mode != "clamp" else "",
            self.filter_mode if self.filter_mode != "linear" else "",
            {"random": "random coordinates", "generated": "coordinates in the kernel", "affine": "affine"}.get(
                self.coordinates, ""
            ),
            f"anisotropic {self.anisotropy}" if self.anisotropy else "trilinear" if self.mips else "",
            "hardware" if self.arithmetic == "hardware" else "",
            "deterministic" if self.deterministic else "",
        ]
        return ", ".join([f"{self.what} {LABELS[self.kind]}", size, f"C={self.channels}", *filter(None, other)])


def aims(**ratios: float) -> tuple[Target, ...]:
    """Targets on a GPU; the names are those of `NAMES`."""
    return tuple(Target(NAMES[peer], ratio) for peer, ratio in ratios.items())


NAMES = {
    "tex": "texture unit",
    "warp": "Warp",
    "nvdiffrast": "nvdiffrast",
    "drjit": "Dr.Jit",
    "torch": "torch",
    "default": "by default",
}
# By the number of channels.
READ_AIMS = {1: aims(tex=1.2), 3: aims(nvdiffrast=0.85), 4: aims(tex=1.0)}
RANDOM_AIMS = {1: aims(tex=1.3), 4: aims(tex=1.1)}
HARDWARE_AIMS = {1: aims(tex=1.3), 3: aims(default=2.0), 4: aims(tex=1.3)}
GRADIENT_AIMS = {
    1: aims(nvdiffrast=0.5),
    3: aims(drjit=0.37),
    4: aims(drjit=0.65),
    16: aims(nvdiffrast=0.33),
    64: aims(drjit=0.5, torch=0.5),
}
VOLUME_GRADIENT_AIMS = {1: aims(drjit=0.5, torch=0.7), 4: aims(drjit=0.9, torch=0.7)}
CPU_READ, CPU_GRADIENTS = Target("OpenCV", 1.0, "cpu"), Target("torch", 0.7, "cpu")


def works(size: int) -> tuple[Work, ...]:
    """Every work, where the largest common image has `size` texels along a side."""
    at = lambda n: max(n * size // 4096, 4)
    sections = {
        "2D reads": reads(size, at),
        "2D reads: formats, address modes, coordinates": variants(size),
        "hardware arithmetic": hardware(size, at),
        "launch overhead": [Work(what, LAUNCH, LAUNCH) for what in ("read", "gradients")],
        "how a read grows": [Work("read", at(n), at(n)) for n in GROWTH],
        "how gradients grow": [Work("gradients", at(n), at(n)) for n in GROWTH],
        "2D gradients": gradients(size, at),
        "many samples into few texels": [
            Work("splat", side, size, channels, targets=aims(drjit=0.7))
            for channels in (4, 1)
            for side in (16, 64, 256, 1024)
        ],
        "adjoint of an affine warp": [
            Work("splat", size, size, c, coordinates="generated", address_mode="border") for c in (4, 3, 1)
        ],
        "deterministic adjoint": deterministic(size),
        "spatial transformer": [dataclasses.replace(transformer(size), targets=aims(torch=0.08))],
        "3D": volumes(size),
        "mip chains": [
            Work("read", at(2048), at(2048), mips=True, targets=aims(nvdiffrast=0.9)),
            Work("gradients", at(2048), at(2048), mips=True, targets=aims(nvdiffrast=0.7)),
            Work("build", at(2048), at(2048), targets=aims(nvdiffrast=1.0)),
        ],
        "cubemaps": [
            Work(what, at(512), at(2048), kind="cubemap", coordinates="panorama", targets=aims(nvdiffrast=ratio))
            for what, ratio in (("read", 1.0), ("gradients", 0.8))
        ],
    }
    named = ([dataclasses.replace(work, section=title) for work in rows] for title, rows in sections.items())
    return tuple(itertools.chain.from_iterable(named))


def reads(size: int, at: Scale) -> list[Work]:
    square = [Work("read", size, size, c, targets=(*READ_AIMS[c], CPU_READ)) for c in (1, 3, 4)]
    return [*square, Work("read", at(2048), at(2048), 16), Work("read", at(1024), at(1024), 64)]


def variants(size: int) -> list[Work]:
    random = [Work("read", size, size, c, coordinates="random", targets=RANDOM_AIMS[c]) for c in (4, 1)]
    stored = [Work("read", size, size, dtype=dtype) for dtype in ("bfloat16", "float16", "uint8")]
    addressed = [Work("read", size, size, address_mode=mode) for mode in ("wrap", "mirror", "border")]
    parts = [Work(what, size, size, 1, dtype="complex64") for what in ("read", "gradients")]
    pairs = [dataclasses.replace(work, channels=2, dtype="float32") for work in parts]
    return [*random, *stored, *addressed, Work("read", size, size, coordinates="generated"), *parts, *pairs]


def hardware(size: int, at: Scale) -> list[Work]:
    of = lambda side, c, **how: Work("read", side, side, c, arithmetic="hardware", **how)
    flat = [of(size, c, targets=HARDWARE_AIMS[c]) for c in (1, 3, 4)]
    deep = [of(volume(size), c, kind="3d", targets=aims(tex=1.5)) for c in (1, 4)]
    slopes = [dataclasses.replace(work, what="slopes", targets=aims(warp=1.0)) for work in (flat[0], flat[2], *deep)]
    chain = Work("read", at(2048), at(2048), mips=True)
    long = [dataclasses.replace(chain, anisotropy=n, arithmetic=how) for how in ("float", "hardware") for n in (4, 16)]
    return [*flat, *deep, of(at(2048), 4, mips=True, targets=aims(default=2.0)), *slopes, *long]


def gradients(size: int, at: Scale) -> list[Work]:
    of = lambda side, c, **how: Work("gradients", side, side, c, **how)
    cpu = {1: (CPU_GRADIENTS,), 4: (CPU_GRADIENTS,)}
    square = [of(size, c, targets=(*GRADIENT_AIMS[c], *cpu.get(c, ()))) for c in (1, 3, 4)]
    deep = [of(at(side), c, targets=GRADIENT_AIMS[c]) for side, c in ((2048, 16), (1024, 64))]
    return [*square, *deep, of(size, 4, coordinates="random"), of(size, 4, dtype="bfloat16")]


def deterministic(size: int) -> list[Work]:
    into = [Work("splat", side, size, c, deterministic=True) for side, c in ((size, 4), (size, 1), (256, 4))]
    of_arrays = Work("gradients", size, size, deterministic=True)
    warp = Work("splat", size, size, 4, coordinates="generated", address_mode="border", deterministic=True)
    affine = [warp, dataclasses.replace(transformer(size), deterministic=True)]
    aim = lambda rows, ratio: [dataclasses.replace(work, targets=aims(default=ratio)) for work in rows]
    return [*aim([*into, of_arrays], 1.5), *aim(affine, 1.0)]


def transformer(size: int) -> Work:
    return Work("step", 224, 224, 3, coordinates="affine", address_mode="border", batch=max(64 * size // 4096, 2))


def volume(size: int) -> int:
    """The side of the volume with as many texels as an image."""
    return max(round(size ** (2 / 3)), 4)


def volumes(size: int) -> list[Work]:
    of = lambda what, c, targets: Work(what, volume(size), volume(size), c, kind="3d", targets=targets)
    read = [of("read", c, aims(torch=0.9)) for c in (1, 4)]
    return [*read, *(of("gradients", c, VOLUME_GRADIENT_AIMS[c]) for c in (1, 4))]
