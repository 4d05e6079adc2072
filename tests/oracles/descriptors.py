"""Which descriptors the CUDA runtime accepts, and with which codes it refuses others: tables from its documentation.

Nothing here imports jaxtex or jax. Each function returns the codes that apply; where several do, any of them may come.
"""

INVALID_VALUE, INVALID_CHANNELS, INVALID_FILTER, INVALID_NORM, NOT_SUPPORTED = 1, 20, 26, 27, 801

SIGNED, UNSIGNED, FLOAT, NONE, NV12 = range(5)
# Kinds 5 to 16 fix their bits: unsigned, then signed; 8 bits, then 16; one, two and four channels.
NORMALIZED = {
    5 + 6 * signed + 3 * wide + k: (8 * (1 + wide), (1, 2, 4)[k])
    for signed in (0, 1)
    for wide in (0, 1)
    for k in (0, 1, 2)
}
BLOCKS_SRGB = (18, 20, 22, 30)
PLANES = {NV12: (8, 8, 8, 0)}
PACKED = {31: (10, 10, 10, 2)}
BLOCKS = {23: (8, 0, 0, 0), 24: (8, 0, 0, 0), 25: (8, 8, 0, 0), 26: (8, 8, 0, 0)}
BLOCKS |= {27: (16, 16, 16, 0), 28: (16, 16, 16, 0)}
BLOCKS |= dict.fromkeys((17, 18, 19, 20, 21, 22, 29, 30), (8, 8, 8, 8))
BLOCKS_OF_8_BYTES = (17, 18, 23, 24)
FLOATING = (FLOAT, 27, 28, 31)

LAYERED, SURFACE, CUBEMAP, GATHER, COLOR, SPARSE, DEFERRED, VIDEO = 1, 2, 4, 8, 0x20, 0x40, 0x80, 0x100
ALL_FLAGS = LAYERED | SURFACE | CUBEMAP | GATHER | COLOR | SPARSE | DEFERRED | VIDEO
WRAP, CLAMP, MIRROR, BORDER = range(4)
ARRAY, MIPMAPPED, LINEAR, PITCH2D = range(4)
# The largest sizes of compute capability 6.0 and above.
TEXTURE_LIMITS = {
    "1d": (131072,),
    "2d": (131072, 65536),
    "3d": (16384,) * 3,
    "1d layered": (32768, 0, 2048),
    "2d layered": (32768, 32768, 2048),
    "cubemap": (32768, 32768, 6),
    "cubemap layered": (32768, 32768, 2046),
}
SURFACE_LIMITS = TEXTURE_LIMITS | {"1d": (32768,)}
GATHER_LIMIT = (32768, 32768)


def channel_bits(kind):
    """The bits that a format of a kind may have."""
    vectors = lambda bits, counts: [(bits,) * n + (0,) * (4 - n) for n in counts]
    if kind in (SIGNED, UNSIGNED):
        return [v for bits in (8, 16, 32) for v in vectors(bits, (1, 2, 4))]
    if kind == FLOAT:
        return [v for bits in (16, 32) for v in vectors(bits, (1, 2, 4))]
    if kind in NORMALIZED:
        bits, count = NORMALIZED[kind]
        return vectors(bits, (count,))
    fixed = PLANES | PACKED | BLOCKS
    return [fixed[kind]] if kind in fixed else []


def faults_of_format(bits, kind):
    """Of a format that CUDA does not have."""
    if kind not in range(32):
        return {INVALID_VALUE}
    return set() if tuple(bits) in channel_bits(kind) else {INVALID_CHANNELS}


def kind_of(extent, flags):
    """The kind of an array, or None where extent and flags fit none."""
    width, height, depth = extent
    if width < 1 or height < 0 or depth < 0:
        return None
    if flags & CUBEMAP:
        fits = width == height and depth and (depth % 6 == 0 if flags & LAYERED else depth == 6)
        name = "cubemap layered" if flags & LAYERED else "cubemap"
        return name if fits else None
    if flags & LAYERED:
        return ("2d layered" if height else "1d layered") if depth else None
    if depth:
        return "3d" if height else None
    return "2d" if height else "1d"


def faults_of_allocation(bits, kind, extent, flags, *, rows_only=False, levels=1):
    """Of cudaMalloc3DArray, or with `rows_only` of cudaMallocArray, or with `levels` of cudaMallocMipmappedArray."""
    faults = faults_of_format(bits, kind)
    allowed = SURFACE | GATHER | SPARSE | DEFERRED | VIDEO if rows_only else ALL_FLAGS
    shape = kind_of(extent, flags)
    wrong = bool(flags & ~allowed) or shape is None
    if shape is not None:
        wrong |= exceeds(extent, TEXTURE_LIMITS[shape])
        wrong |= bool(flags & GATHER) and (shape != "2d" or exceeds(extent, GATHER_LIMIT))
        wrong |= bool(flags & SPARSE) and shape not in ("2d", "3d", "2d layered")
    if not faults and kind in BLOCKS:
        faults = {NOT_SUPPORTED} if flags & SURFACE else set()
        wrong |= shape in ("1d", "1d layered")
    wrong |= kind in BLOCKS | PACKED | PLANES and bool(flags & COLOR)
    if kind in PLANES:
        odd = extent[0] % 2 or extent[1] % 2 or shape not in ("2d", "2d layered")
        wrong |= bool(odd) or not flags & VIDEO or (levels > 1 and len(level_sizes(extent, flags, levels)) > 1)
    return faults | ({INVALID_VALUE} if wrong else set())


def element(bits, kind):
    """The side of an element in texels, its size in bytes, and how many numbers hold it."""
    if kind in BLOCKS:
        size = 8 if kind in BLOCKS_OF_8_BYTES else 16
        return 4, size, size // 4
    if kind in PLANES:
        return 1, 1, 1
    return 1, sum(bits) // 8, 1 if kind in PACKED else sum(b > 0 for b in bits)


def stored_shape(bits, kind, extent):
    """The shape of the numbers of an array, slowest axis first."""
    side, _, numbers = element(bits, kind)
    shape = [n for n in extent[::-1] if n]
    if kind in PLANES:
        shape[-2] = 3 * shape[-2] // 2
    return (*shape[:-2], *(-(-n // side) for n in shape[-2:]), numbers)


def exceeds(extent, limits):
    return any(size > most for size, most in zip(extent, limits))


def level_sizes(extent, flags, count):
    """The extents of the levels that cudaMallocMipmappedArray allocates."""
    layers = flags & (LAYERED | CUBEMAP)
    longest = max(extent[:2] if layers else extent)
    count = min(max(count, 1), longest.bit_length())
    shrink = lambda n, level: max(1, n >> level) if n else 0
    return [
        (shrink(extent[0], k), shrink(extent[1], k), extent[2] if layers else shrink(extent[2], k))
        for k in range(count)
    ]


def is_integer(bits, kind):
    return kind in (SIGNED, UNSIGNED)


def faults_of_read(bits, kind, normalized, linear, *, srgb=0):
    """Of the format, the read mode and the filter: the table of the runtime."""
    if kind == NV12:
        return {INVALID_VALUE}
    if is_integer(bits, kind):
        if bits[0] == 32:
            return {INVALID_FILTER} if linear else {INVALID_NORM} if normalized else set()
        return {INVALID_FILTER} if linear and not normalized else set()
    if kind in FLOATING:
        return {INVALID_NORM} if normalized else set()
    if not normalized:
        return {INVALID_NORM}
    return {INVALID_VALUE} if kind in BLOCKS_SRGB and not srgb else set()


def viewed_as_fractions(held, viewed, normalized):
    """Whether a view is read as fractions: integers of 8 or 16 bits, if the array has others, or by NormalizedFloat."""
    small = lambda bits, kind: is_integer(bits, kind) and bits[0] < 32
    return small(*viewed) and bool(normalized or not small(*held))


def faults_of_texture(resource, bits, kind, shape, desc, viewed=None):
    """Of cudaCreateTextureObject, with a valid resource. `desc` has the fields of cudaTextureDesc, all numbers.

    CUDA looks at the format of the array, `bits` and `kind`, not at that of a view, `viewed`. The project models
    neither blends of 32-bit integers, which a view allows, nor blends of levels of integers.
    """
    wrong = any(mode not in range(4) for mode in desc["addressMode"]) or len(desc["addressMode"]) > 3
    enums = ("filterMode", "readMode", "mipmapFilterMode")
    wrong |= any(desc[name] not in (0, 1) for name in enums)
    wrong |= bool(desc["seamlessCubemap"]) and "cubemap" not in shape
    wrong |= len(desc["borderColor"]) != 4
    faults = {INVALID_VALUE} if wrong else set()
    known = all(desc[name] in (0, 1) for name in enums)
    if known:
        faults |= faults_of_read(bits, kind, desc["readMode"], desc["filterMode"], srgb=desc["sRGB"])
    if resource == MIPMAPPED:
        if not desc["normalizedCoords"] and "cubemap" not in shape:
            faults |= {INVALID_VALUE}
        is_element = not (viewed_as_fractions((bits, kind), viewed or (bits, kind), desc["readMode"]))
        if known and is_integer(*(viewed or (bits, kind))) and is_element and desc["mipmapFilterMode"]:
            faults |= {NOT_SUPPORTED}
    plain_blocks = resource in (LINEAR, PITCH2D) and kind in BLOCKS
    wide = viewed not in (None, (bits, kind)) and viewed[1] in (SIGNED, UNSIGNED) and viewed[0][0] == 32
    if plain_blocks or (wide and desc["filterMode"] == 1):
        faults |= {NOT_SUPPORTED}
    return faults


def faults_of_view(bits, kind, view_bits, extent, levels, layers, view):
    """Of a view of an array, with the fields of the struct. `view_bits` is None for the format of the array."""
    wrong = (view["width"], view["height"], view["depth"]) != tuple(extent) or kind in BLOCKS
    for name, count in (("MipmapLevel", levels), ("Layer", layers)):
        wrong |= not 0 <= view[f"first{name}"] <= view[f"last{name}"] < count
    wrong |= view_bits is not None and sum(view_bits) != sum(bits)
    return {INVALID_VALUE} if wrong else set()
