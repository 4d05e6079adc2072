// Starts sums of integers, or turns those to which `adjoint.cu` has added into numbers.
//
// `exact_sums.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "join/config.cuh"
#include "join/traced.cuh"
#include "scatter/exact_sums.cuh"
#include "scatter/squares.cuh"

// Starts a sum, or turns it into a number. If `adds`, the number is added to what windows have added.
DEVICE void take(const Arrays& arrays, int64 number, bool adds) {
  uint64* const sums = (uint64*)arrays.totals;
  if constexpr (starts) {
    sums[number] = start_of_sum;
  } else {
    const float sum = number_of(sums + number, copies, count, arrays.unit[0]);
    arrays.result[number] = adds ? arrays.result[number] + sum : sum;
  }
}

// Takes the sums of a square of texels, if integers are added to it.
DEVICE void take_square(const Arrays& arrays, int square) {
  const bool all = arrays.marks[all_mark], full = is_full(arrays.marks, square);
  if (!all && !full && !arrays.marks[2 * square + 1]) return;
  constexpr int side = Stored::side, length = side * channels;
  const int first_x = square % Stored::squares_across * side, row = square / Stored::squares_across;
  const int first_y = row % Stored::squares_down * side, first_row = row / Stored::squares_down * Stored::down + first_y;
  const int rows = min(side, Stored::down - first_y), columns = min(side, Stored::across - first_x) * channels;
#pragma unroll 4
  for (int k = threadIdx.x; k < rows * length; k += threads)
    if (k % length < columns)
      take(arrays, ((int64)(first_row + k / length) * Stored::across + first_x) * channels + k % length, !all && !full);
}

DEVICE void run(const Arrays& arrays) {
  if constexpr (of_rest) {
    if (!adds_integers(arrays.marks)) return;
    for (int square = blockIdx.x; square < Stored::squares; square += num_blocks) take_square(arrays, square);
  } else {
    const int64 first = (int64)blockIdx.x * threads * steps + threadIdx.x;
#pragma unroll
    for (int k = 0; k < steps; k++)
      if (first + k * threads < count) take(arrays, first + k * threads, false);
  }
}
