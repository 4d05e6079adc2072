#pragma once
#include "samples/position.cuh"
#include "scatter/squares_config.cuh"
#include "trace/warp.cuh"

// Squares of texels, to which stored windows or integers are added; see `stored.py`.
//
// `marks` has two numbers for each square: how many windows lie on it, and whether other samples may add to it. Then come
// the bits of the largest value, whether a tile has no stored window, whether a square is full, the number of tiles whose
// samples lie too far apart, and whether these are so many that all samples are added as integers.
constexpr int largest_mark = 2 * Stored::squares, rest_mark = largest_mark + 1, full_mark = largest_mark + 2;
constexpr int apart_mark = largest_mark + 3, all_mark = largest_mark + 4;

// The place of a texel. Rows are numbered through all textures.
struct Place { int y, x; };
DEVICE Place place_of(int texel) { return {texel / Stored::across, texel % Stored::across}; }

DEVICE int square_of(Place at) {
  const int down = at.y / Stored::down * Stored::squares_down + at.y % Stored::down / Stored::side;
  return down * Stored::squares_across + at.x / Stored::side;
}

// Whether a square has more windows than its list has room for.
DEVICE bool is_full(const int* marks, int square) { return marks[2 * square] > Stored::most_windows; }

// Whether windows are added to the texels of a square, and whether integers are.
DEVICE bool has_windows(const int* marks, int square) { return !marks[all_mark] && !is_full(marks, square); }
DEVICE bool has_integers(const int* marks, int square) { return !has_windows(marks, square) || marks[2 * square + 1] != 0; }

// Loads a mark that other blocks may have just set.
DEVICE int latest(const int* mark) { return *(const volatile int*)mark; }

// Whether integers are added to any texel.
DEVICE bool adds_integers(const int* marks) { return marks[rest_mark] != 0 || marks[full_mark] != 0; }
