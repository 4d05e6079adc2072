// Turns the sums of integers to which `adjoint.cu` has added into numbers, or starts them.
//
// `exact_sums.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "join/config.cuh"
#include "join/traced.cuh"
#include "scatter/exact_sums.cuh"
#include "scatter/squares.cuh"

// The number of a texel.
DEVICE void take(const Arrays& arrays, int64 number) {
  uint64* const sums = (uint64*)arrays.totals;
  bool adds = false;
  if (of_rest && !arrays.marks[all_mark]) {
    const int square = square_of(place_of(number / channels));
    adds = !is_full(arrays.marks, square);
    if (adds && !arrays.marks[2 * square + 1]) return;
  }
  if constexpr (starts) {
    sums[number] = start_of_sum;
  } else {
    const float sum = number_of(sums + number, copies, count, arrays.unit[0]);
    arrays.result[number] = adds ? arrays.result[number] + sum : sum;
  }
}

DEVICE void run(const Arrays& arrays) {
  if constexpr (of_rest)
    if (!adds_integers(arrays.marks)) return;
  for (int64 first = (int64)blockIdx.x * threads * steps + threadIdx.x; first < count; first += num_blocks * threads * steps) {
#pragma unroll
    for (int k = 0; k < steps; k++)
      if (first + k * threads < count) take(arrays, first + k * threads);
  }
}
