"""The division of a grid of samples among threads."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from ..build.launch import LANES

# The most threads of a block.
THREADS = 128
# A thread computes several samples if at least so many threads remain.
LEAST_THREADS = 2**19


class Tiles(NamedTuple):
    """The division of a grid into tiles, one for each block of threads, along the last three axes of the grid.

    Attributes:
        sizes: the sizes of the grid.
        lanes: the threads of a tile along each axis; 1 along axes before the last three.
        samples: the samples of a thread.
        along: the axis along which a thread has several samples: adjacent ones, but along the last axis those that are
            `lanes` apart, so that the threads of a warp read adjacent numbers.
    """

    sizes: tuple[int, ...]
    lanes: tuple[int, ...]
    samples: int = 1
    along: int = -1

    @classmethod
    def of(cls, sizes: tuple[int, ...], most: int = 1, from_end: int = 1) -> "Tiles":
        """Tiles with at most `most` samples a thread, along the axis with number `from_end` from the end."""
        lanes, left, rank, along = [], THREADS, len(sizes), len(sizes) - from_end
        for k, size in enumerate(reversed(sizes)):
            row = LANES if k == 0 and rank > 1 else left
            count = min(left, row, 1 << (size - 1).bit_length()) if k < 3 else 1
            lanes.append(count)
            left //= count
        lanes.reverse()
        samples = 1
        while (
            2 * samples <= most
            and math.prod(sizes) >= 2 * samples * LEAST_THREADS
            and sizes[along] >= 2 * samples * lanes[along]
        ):
            samples *= 2
        return cls(sizes, tuple(lanes), samples, along)

    @property
    def samples_along(self) -> tuple[int, ...]:
        """The samples of a thread along each axis."""
        return tuple(self.samples if k == self.along else 1 for k in range(len(self.sizes)))

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of tiles along each axis."""
        return tuple(-(-n // (m * some)) for n, m, some in zip(self.sizes, self.lanes, self.samples_along))

    @property
    def num_blocks(self) -> int:
        return math.prod(self.counts)

    @property
    def num_threads(self) -> int:
        """The threads of a block, whole warps."""
        return -(-math.prod(self.lanes) // LANES) * LANES

    def are_shared(self, axes: Sequence[int]) -> bool:
        """Whether all samples of a tile lie along some axes."""
        return all(m * some == 1 or k in axes for k, (m, some) in enumerate(zip(self.lanes, self.samples_along)))

    def are_along_lanes(self, axes: Sequence[int]) -> bool:
        """Whether all samples along some axes are those of a group of adjacent lanes of a warp."""
        last = len(self.sizes) - 1
        is_last = [k for k in axes if self.sizes[k] > 1] == [last]
        return is_last and self.counts[last] == self.samples_along[last] == 1 and self.lanes[last] <= LANES

    def statements(self) -> tuple[list[str], list[str]]:
        """The index of a thread's samples on each axis, `i0` and so on, and whether there is one.

        Returns:
            The statements before the loop over a thread's samples, and in it. Indices that are known before the loop
            are clamped to the grid, so that loads there are of memory that exists.
        """
        before, in_loop, block, lane = [], [], "blockIdx.x", "threadIdx.x"
        block_divisor, lane_divisor, inside = 1, 1, []
        for k in reversed(range(len(self.sizes))):
            count, lanes, samples = self.counts[k], self.lanes[k], self.samples_along[k]
            tile = f"({block} / {block_divisor} % {count})" if count > 1 else "0"
            own = f"(int)({lane} / {lane_divisor} % {lanes})" if lanes > 1 else "0"
            first, ends = f"(int){tile} * {lanes * samples} + {own}", count * lanes * samples > self.sizes[k]
            if samples > 1:
                further = f"+ step * {lanes}" if k == len(self.sizes) - 1 else f"* {samples} + step"
                in_loop.append(f"const int i{k} = {first} {further};")
                inside += [f"i{k} < {self.sizes[k]}"] * ends
            elif ends:
                before += [f"const int at{k} = {first};", f"const int i{k} = minimum(at{k}, {self.sizes[k] - 1});"]
                inside.append(f"at{k} < {self.sizes[k]}")
            else:
                before.append(f"const int i{k} = {first};")
            block_divisor, lane_divisor = block_divisor * count, lane_divisor * lanes
        if lane_divisor < self.num_threads:
            inside.append(f"threadIdx.x < {lane_divisor}")
        return before, [*in_loop, f"const bool is_sample = {' && '.join(inside) or 'true'};"]

    def loop(
        self, first: Sequence[str], of_sample: Sequence[str], more: Sequence[str] = (), unrolled: bool = True
    ) -> list[str]:
        """Statements for each sample of a thread: `first`, then `of_sample` and `more` where there is a sample.

        What `of_sample` defines, and all samples of a thread share, stands before the loop.
        """
        if self.samples == 1:
            return [*first, "if (is_sample) {", *of_sample, *more, "}"]
        shared, own = shared_and_own(of_sample, f"i{self.along}")
        how, turns = "#pragma unroll" + " 1" * (not unrolled), f"for (int step = 0; step < {self.samples}; step++) {{"
        return [*shared, how, turns, *first, "if (is_sample) {", *own, *more, "}", "}"]


# A definition: "const " if it is that of a constant, and its name.
DEFINITION = re.compile(r"(const )?[\w<>, ]+ (\w+)(?:\[\d+\])?(?: = .*)?;")
NAME = re.compile(r"[A-Za-z_]\w*")


def shared_and_own(statements: Sequence[str], index: str) -> tuple[list[str], list[str]]:
    """The definitions of constants that do not depend on the name `index`, and all other statements."""
    shared, own, dependent, depth = [], [], {index}, 0
    for line in statements:
        found = DEFINITION.fullmatch(line)
        if found and found[1] and not depth and dependent.isdisjoint(NAME.findall(line)):
            shared.append(line)
            continue
        own.append(line)
        dependent |= {found[2]} if found else set()
        depth += line.count("{") - line.count("}")
    return shared, own
