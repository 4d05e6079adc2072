#pragma once
#include "scatter/squares.cuh"

// A stored window. If cells are aligned, only cells that are not zero are stored, after a group for each `lanes` cells: a
// bit for each stored cell, and the number of the first one. Otherwise, all cells are stored.
struct alignas(8) Group { uint32 cells; int first; };
template <class Channels, int cells, int lanes> struct StoredWindow {
  static constexpr int row = Channels::parts * Channels::width;
  static constexpr bool packs = row % 4 == 0;
  static constexpr int groups = ceil_div(cells, lanes), first_cell = packs ? ceil_div(groups, 2) * 4 : 0;
  static constexpr int size = first_cell + cells * row;
};

// The texels on which a stored window lies. If `rows` is negative, samples are added as integers: it is the complement of
// the rows of a crowded window, or `samples_apart` if samples lie too far apart for a window.
constexpr int samples_apart = -2147483647 - 1;
struct alignas(16) Box { int low_y, low_x, rows, columns; };
DEVICE int stride_of(const Box& box) { return box.columns >> 16; }
DEVICE int columns_of(const Box& box) { return box.columns & 65535; }

// Calls a function with each square on which a box lies. The squares are divided among `lanes` lanes.
template <class F> DEVICE void with_squares(const Box& box, int lane, int lanes, F function) {
  const int y = box.low_y % Stored::down % Stored::side, x = box.low_x % Stored::side;
  const int down = ceil_div(y + box.rows, Stored::side), across = ceil_div(x + columns_of(box), Stored::side);
  const int first = square_of(Place{box.low_y, box.low_x});
  for (int k = lane; k < down * across; k += lanes) function(first + k / across * Stored::squares_across + k % across);
}
