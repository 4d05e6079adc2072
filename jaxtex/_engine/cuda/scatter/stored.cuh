#pragma once
#include "trace/warp.cuh"

// Windows that are stored, and squares of texels with the numbers of the windows that lie on them; see `stored.py`.
// `Stored` has the squares of all textures, and what `marks` has for each: the number of its windows, and whether samples
// without a window may add to it. After those of all squares come numbers that all share.
constexpr int largest_mark = 2 * Stored::squares, rest_mark = largest_mark + 1, full_mark = largest_mark + 2;

DEVICE int square_of(int texture, int y, int x) {
  return (texture * Stored::squares_down + y / Stored::side) * Stored::squares_across + x / Stored::side;
}
DEVICE int square_of(int texel) {
  const int row = texel / Stored::across;
  return square_of(row / Stored::down, row % Stored::down, texel % Stored::across);
}

// Whether a square has more windows than its list has room for.
DEVICE bool is_full(const int* marks, int square) { return marks[2 * square] > Stored::most_windows; }

// Whether samples without a window may add to a square. If there are many, they may add to any.
DEVICE bool meets_rest(const int* marks, int square) {
  return marks[2 * square + 1] != 0 || marks[rest_mark] > Stored::most_rest;
}

// Whether integers are added to any texel.
DEVICE bool adds_integers(const int* marks) { return marks[rest_mark] != 0 || marks[full_mark] != 0; }

// The box of a stored window. One without rows is not stored.
struct alignas(16) Box { int low_y, low_x, rows, columns; };
DEVICE int stride_of(const Box& box) { return box.columns >> 16; }
DEVICE int columns_of(const Box& box) { return box.columns & 65535; }
