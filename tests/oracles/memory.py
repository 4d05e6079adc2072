"""What accesses, copies and cotangents of single texels are, in plain NumPy: an independent statement of the rules.

Nothing here imports jaxtex or jax. Texels are (n, channels) arrays in memory order, and memory is an array of bytes.
Samples are counted in flattened (row-major) order, and the last of several at one place is kept.
"""

import numpy as np

FAR = 2**40  # beyond every surface, and a multiple of the size of every access


# Integers


def exact(index):
    """Integers of any type as int64; those that are far outside of every surface stay so."""
    if isinstance(index, int):
        return np.int64(min(max(index, -FAR), FAR))
    index = np.asarray(index)
    if index.dtype == np.uint64:
        return np.minimum(index, np.uint64(FAR)).astype(np.int64)
    return np.clip(index.astype(np.int64), -FAR, FAR)


def as_int(index):
    """The argument of a function that takes an `int`: unsigned numbers are taken modulo 2^32, as in C."""
    if isinstance(index, int) or np.asarray(index).dtype.kind != "u":
        return exact(index)
    return (
        (np.asarray(index).astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32).astype(np.int64)
    )


def misaligned(x, size):
    """Which bytes are no multiples of the size of an access."""
    return np.asarray(x % size if isinstance(x, int) else np.asarray(x) % np.asarray(x).dtype.type(size)) != 0


def fits(numbers, dtype):
    """Whether a dtype of integers holds all of these Python integers."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return all(low <= int(number) <= high for number in numbers)


# Places


def place(indices, sizes, mode, outer=0):
    """The flat texel of each sample, and whether it is inside. Indices are exact, slowest axis first.

    The first `outer` axes are layers and faces, of which a clamp takes the last, whatever the index.
    """
    flat, inside = np.int64(0), np.bool_(True)
    for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
        here = (index >= 0) & (index < size)
        if mode == "clamp":
            index = np.where(here, index, size - 1) if axis < outer else np.clip(index, 0, size - 1)
        else:
            inside = inside & here
        flat = flat * size + np.clip(index, 0, size - 1)
    return flat, inside


def place_of_bytes(x, others, sizes, size, mode, outer=0):
    """The row and the first byte of each access of `size` bytes, and whether it is inside.

    `sizes` are the slower axes and the bytes in a row, of which only whole units of `size` bytes are seen.
    """
    units = sizes[-1] // size
    wrong = misaligned(x, size)
    if not units:
        none = np.zeros(np.broadcast_shapes(np.shape(x), *map(np.shape, others)), np.int64)
        return none, none, none.astype(bool)
    flat, inside = place([*others, as_int(x) // size], [*sizes[:-1], units], mode, outer)
    return flat // units, flat % units * size, inside & ~wrong


# Accesses of texels


def read(texels, flat, inside):
    """The texels, S + (channels,), and zero outside."""
    return np.where(np.asarray(inside)[..., None], texels[flat], np.zeros((), texels.dtype))


def landed(values, flat, inside):
    """The values inside and their texels, in the order of samples: (m, channels) and (m,)."""
    shape = values.shape[:-1]
    keep = np.broadcast_to(inside, shape).ravel()
    return values.reshape(-1, values.shape[-1])[keep], np.broadcast_to(flat, shape).ravel()[keep], np.flatnonzero(keep)


def write(texels, values, flat, inside):
    """The texels after one value after the other."""
    rows, at, _ = landed(values, flat, inside)
    out = texels.copy()
    out[at] = rows  # of several values for one place NumPy leaves the last
    return out


def add(texels, values, flat, inside):
    """Integers wrap around; floats are summed in float64 and rounded to float32, then to their type."""
    rows, at, _ = landed(values, flat, inside)
    if texels.dtype.kind in "iu":
        out = texels.copy()
        np.add.at(out, at, rows)
        return out
    out = texels.astype(np.float64)
    np.add.at(out, at, rows.astype(np.float64))
    return where_touched(texels, out.astype(np.float32).astype(texels.dtype), at)


def extreme(texels, values, flat, inside, rule):
    """The least or the largest; NaN wins."""
    rows, at, _ = landed(values, flat, inside)
    join = {"min": np.minimum, "max": np.maximum}[rule]
    if texels.dtype.kind in "iu":
        out = texels.copy()
        join.at(out, at, rows)
        return out
    out = texels.astype(np.float64)
    with np.errstate(invalid="ignore"):
        join.at(out, at, rows.astype(np.float64))
    return where_touched(texels, out.astype(texels.dtype), at)


def where_touched(texels, changed, at):
    """The changed texels at `at`, and all others with the bits that they had."""
    out = texels.copy()
    out[at] = changed[at]
    return out


# Accesses of bytes


def read_bytes(memory, row, byte, inside, size):
    """The bytes of each access, S + (size,), of memory (rows, bytes)."""
    places = np.minimum(np.asarray(byte)[..., None] + np.arange(size), memory.shape[-1] - 1)
    found = memory[np.asarray(row)[..., None], places]
    return np.where(np.asarray(inside)[..., None], found, np.uint8(0))


def write_bytes(memory, values, row, byte, inside):
    """The memory after one write after the other of values, S + (size,)."""
    rows, at, _ = landed(values, row, inside)
    first = landed(values, byte, inside)[1]
    out = memory.copy()
    out[at[:, None], first[:, None] + np.arange(values.shape[-1])] = rows
    return out


# Cotangents. All are sums of whole numbers, so their order does not matter.


def summed(count, rows, at, dtype):
    out = np.zeros((count, rows.shape[-1]))
    np.add.at(out, at, rows.astype(np.float64))
    return out.astype(np.float32).astype(dtype)


def cotangent_of_read(count, cotangent, flat, inside):
    """Of the texels: each cotangent is added at its texel."""
    rows, at, _ = landed(cotangent, flat, inside)
    return summed(count, rows, at, cotangent.dtype)


def cotangents_of_write(cotangent, shape, flat, inside):
    """Of the texels, zero where they were written, and of the values, zero where one was overwritten or dropped."""
    _, at, number = landed(np.zeros((*shape, 1)), flat, inside)
    last = np.full(len(cotangent), -1)
    last[at] = number
    of_texels = np.where((last < 0)[:, None], cotangent, np.zeros((), cotangent.dtype))
    of_values = np.zeros((int(np.prod(shape)), cotangent.shape[-1]), cotangent.dtype)
    of_values[last[last >= 0]] = cotangent[last >= 0]
    return of_texels, of_values.reshape(*shape, -1)


def cotangents_of_add(cotangent, shape, flat, inside):
    """Of the texels and of the values, zero where one was dropped."""
    flat, inside = np.broadcast_to(flat, shape), np.broadcast_to(inside, shape)
    return cotangent, read(cotangent, flat, inside)


def cotangents_of_extreme(texels, values, cotangent, flat, inside, rule):
    """To the one that won in each channel: of those that tie the texel, then the first value."""
    rows, at, number = landed(values, flat, inside)
    best = extreme(texels, values, flat, inside, rule).astype(np.float64)
    same = lambda a, b: (a == b) | (np.isnan(a) & np.isnan(b))
    winner = np.full(texels.shape, -1)
    for k in reversed(range(len(rows))):  # so that the first is left
        ties = same(rows[k].astype(np.float64), best[at[k]])
        winner[at[k]] = np.where(ties, number[k], winner[at[k]])
    winner[same(texels.astype(np.float64), best)] = -1
    of_texels = np.where(winner < 0, cotangent, np.zeros((), cotangent.dtype))
    of_values = np.zeros((int(np.prod(values.shape[:-1])), texels.shape[-1]), cotangent.dtype)
    texel, channel = np.nonzero(winner >= 0)
    of_values[winner[texel, channel], channel] = cotangent[texel, channel]
    return of_texels, of_values.reshape(values.shape)


# Reads of a texture unit at whole numbers


def texel_at(position, size, mode):
    """The texel of a tap, or -1 for the border. `position` is a whole number."""
    inside = (position >= 0) & (position < size)
    return np.where(inside | (mode != "border"), np.clip(position, 0, size - 1), -1)


def axis_taps(coord, size, mode, *, normalized, linear):
    """The texels, -1 for the border, that a read at a whole coordinate means, each with the same weight.

    Without normalized coordinates wrap and mirror clamp. With them a whole number is an edge of the texture.
    """
    coord = np.asarray(coord).astype(np.float32).astype(np.float64)
    if not normalized:
        taps = [coord - 1, coord] if linear else [coord]
        return [texel_at(np.clip(tap, -4, size + 4).astype(np.int64), size, mode) for tap in taps]
    if mode == "wrap":
        taps = [np.full(coord.shape, size - 1), np.zeros(coord.shape, np.int64)]
    elif mode == "mirror":
        edge = np.where(np.mod(coord, 2) == 1, size - 1, 0)
        taps = [edge, edge]
        # At an odd number the tap behind the edge is size, which mirrors to size - 1, as the one before it.
    else:
        position = np.clip(coord, -2, 2).astype(np.int64) * size
        taps = [texel_at(position - 1, size, mode), texel_at(position, size, mode)]
    return taps if linear else taps[1:]


def read_whole(texels, taps, border):
    """The mean over all combinations of taps, one list an axis, slowest first, of texels with channels last."""
    total, count = 0.0, 0
    for combination in np.ndindex(*(len(axis) for axis in taps)):
        index = [axis[k] for axis, k in zip(taps, combination)]
        outside = np.any(np.stack(np.broadcast_arrays(*index)) < 0, axis=0)
        total = total + np.where(outside[..., None], border, texels[tuple(np.maximum(k, 0) for k in index)])
        count += 1
    return total / count


def decoded(texels, *, normalized):
    """Stored numbers as a fetch returns them: halves as float32, fractions as float32."""
    if not normalized:
        return texels.astype(np.float32) if texels.dtype == np.float16 else texels
    return np.maximum(texels.astype(np.float32) / np.float32(np.iinfo(texels.dtype).max), np.float32(-1))


# Copies of bytes


def copy_rows(dst, src, target, source, width, height, depth):
    """The bytes of `dst` with rows of `src`. A part is (offset, pitch, slice pitch); row r of slice s starts there."""
    out = dst.copy()
    for s in range(depth):
        for r in range(height):
            to, of = (part[0] + s * part[2] + r * part[1] for part in (target, source))
            out[to : to + width] = src[of : of + width]
    return out


# Errors of copies. Where several apply, CUDA does not say which comes first.

INVALID_VALUE, INVALID_PITCH, INVALID_DIRECTION = 1, 12, 21


def faults_of_memory(size, offset, pitch, slice_pitch, width, height, depth):
    """What is wrong with rows of bytes in a memory of `size` bytes."""
    faults = set()
    if min(offset, pitch, slice_pitch, width, height, depth) < 0:
        faults.add(INVALID_VALUE)
    if width > pitch and max(height, depth) > 1:
        faults.add(INVALID_PITCH)
    if offset + (depth - 1) * slice_pitch + (height - 1) * pitch + width > size:
        faults.add(INVALID_VALUE)
    return faults


def faults_of_box(sizes, start, counts):
    """What is wrong with a box in an array of `sizes` elements, x first."""
    wrong = any(s < 0 or c < 0 or s + c > n for s, c, n in zip(start, counts, sizes, strict=True))
    return {INVALID_VALUE} if wrong else set()


def faults_of_kind(kind):
    return set() if kind in range(5) else {INVALID_DIRECTION}


# Numbers of other types than the texels


def saturated(number, dtype):
    """A Python integer, or the nearest one that a dtype of integers holds."""
    return min(max(int(number), int(np.iinfo(dtype).min)), int(np.iinfo(dtype).max))


def rounded(number, digits):
    """A Python integer rounded once, half to even, to a number of binary digits."""
    size = abs(number)
    drop = max(size.bit_length() - digits, 0)
    kept, rest = size >> drop, size & ((1 << drop) - 1)
    half = 1 << drop >> 1
    kept += bool(drop) and (rest > half or (rest == half and kept & 1))
    return (kept << drop) * (-1 if number < 0 else 1)
