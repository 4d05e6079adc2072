"""Where additions into texels go: rows of a width that memory likes, and private copies where samples crowd."""

# So many samples for each texel are a crowd.
CROWDED_SAMPLES = 4
# Bounds of the memory of private copies: bytes, or a share of what a call reads and writes; and of their number.
COPIES_BYTES, COPIES_SHARE, MAX_COPIES = 8 * 2**20, 0.05, 512


def power_of_two_above(n: int) -> int:
    """The least power of two that is not below `n`."""
    return 1 << (n - 1).bit_length()


def power_of_two_below(n: int) -> int:
    """The largest power of two that is not above `n`."""
    return 1 << (n.bit_length() - 1)


def row_lanes(channels: int) -> int:
    """The numbers of a row: a power of two is faster; a row is padded if that costs at most a third of the memory."""
    lanes = power_of_two_above(channels)
    return lanes if 3 * lanes <= 4 * channels else channels


def samples_meet(samples: int, texels: int) -> bool:
    """Whether so many samples often meet at a texel."""
    return samples >= CROWDED_SAMPLES * texels


def num_private_copies(samples: int, texels: int, channels: int) -> int:
    """How many copies of the texels to add to, where additions are atomic: a power of two.

    Copies pay off where several samples meet at a texel. They are bounded in number, and in memory by a share of what
    the call reads and writes, or by a few megabytes.
    """
    if not samples_meet(samples, texels):
        return 1
    bound = max(COPIES_BYTES, int(COPIES_SHARE * 4 * samples * channels)) // (4 * texels * channels)
    return power_of_two_below(min(MAX_COPIES, max(1, bound)))
