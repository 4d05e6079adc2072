#pragma once
#include "samples/position.cuh"
#include "trace/warp.cuh"

// Windows that are stored, and squares of texels with the numbers of the windows that lie on them; see `stored.py`.
// `Stored` has the squares of all textures, and what `marks` has for each: the number of its windows, and whether samples
// without a window may add to it. After those of all squares come numbers that all share.
constexpr int largest_mark = 2 * Stored::squares, rest_mark = largest_mark + 1, full_mark = largest_mark + 2;

// The place of a texel; rows are numbered through all textures.
struct Place { int y, x; };
DEVICE Place place_of(int texel) { return {texel / Stored::across, texel % Stored::across}; }

DEVICE int square_of(Place at) {
  const int down = at.y / Stored::down * Stored::squares_down + at.y % Stored::down / Stored::side;
  return down * Stored::squares_across + at.x / Stored::side;
}

// Whether a square has more windows than its list has room for.
DEVICE bool is_full(const int* marks, int square) { return marks[2 * square] > Stored::most_windows; }

// Whether samples without a window may add to a square. If there are many, they may add to any.
DEVICE bool meets_rest(const int* marks, int square) {
  return marks[2 * square + 1] != 0 || marks[rest_mark] > Stored::most_rest;
}

// Whether integers are added to any texel.
DEVICE bool adds_integers(const int* marks) { return marks[rest_mark] != 0 || marks[full_mark] != 0; }

// The box of a stored window; `rows` is negative if it is not stored.
struct alignas(16) Box { int low_y, low_x, rows, columns; };
DEVICE int stride_of(const Box& box) { return box.columns >> 16; }
DEVICE int columns_of(const Box& box) { return box.columns & 65535; }

// Calls a function with each square on which a box lies, one for each of some lanes.
template <class F> DEVICE void with_squares(const Box& box, int lane, int lanes, F function) {
  const int y = box.low_y % Stored::down % Stored::side, x = box.low_x % Stored::side;
  const int down = ceil_div(y + box.rows, Stored::side), across = ceil_div(x + columns_of(box), Stored::side);
  const int first = square_of(Place{box.low_y, box.low_x});
  for (int k = lane; k < down * across; k += lanes) function(first + k / across * Stored::squares_across + k % across);
}
