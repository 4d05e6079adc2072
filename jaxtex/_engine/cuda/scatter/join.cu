// Starts sums of integers, or turns those to which `adjoint.cu` has added into numbers.
//
// `exact_sums.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "join/config.cuh"
#include "join/traced.cuh"
#include "scatter/exact_sums.cuh"
#include "scatter/squares.cuh"

// Starts the sums of a square of texels, if integers are added to it.
DEVICE void start_square(const Arrays& arrays, int square, int lane) {
  if (!has_integers(arrays.marks, square)) return;
  constexpr int side = Stored::side, length = side * channels;
  const int first_x = square % Stored::squares_across * side, row = square / Stored::squares_across;
  const int first_y = row % Stored::squares_down * side, first_row = row / Stored::squares_down * Stored::down + first_y;
  const int rows = min(side, Stored::down - first_y), columns = min(side, Stored::across - first_x) * channels;
#pragma unroll 4
  for (int k = lane; k < rows * length; k += lanes)
    if (k % length < columns)
      ((uint64*)arrays.totals)[((int64)(first_row + k / length) * Stored::across + first_x) * channels + k % length] = start_of_sum;
}

DEVICE void run(const Arrays& arrays) {
  if constexpr (starts) {
    if (!adds_integers(arrays.marks)) return;
    constexpr int warps = threads / lanes;
    for (int square = blockIdx.x * warps + threadIdx.x / lanes; square < Stored::squares; square += num_blocks * warps)
      start_square(arrays, square, threadIdx.x % lanes);
  } else {
    const int64 first = (int64)blockIdx.x * threads * steps + threadIdx.x;
#pragma unroll
    for (int k = 0; k < steps; k++) {
      const int64 number = first + k * threads;
      if (number < count)
        arrays.result[number] = number_of((const uint64*)arrays.totals + number, copies, count, arrays.unit[0]);
    }
  }
}
