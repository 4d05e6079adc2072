// Turns the sums of integers to which `adjoint.cu` has added into numbers, or starts them.
//
// `exact_sums.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "join/config.cuh"
#include "join/traced.cuh"
#include "scatter/exact_sums.cuh"
#include "scatter/stored.cuh"

DEVICE void run(const Arrays& arrays) {
  const int64 first = (int64)blockIdx.x * threads * steps + threadIdx.x;
  uint64* const sums = (uint64*)arrays.totals;
  if constexpr (of_rest)
    if (!adds_integers(arrays.marks)) return;
#pragma unroll
  for (int k = 0; k < steps; k++) {
    const int64 number = first + k * threads;
    if (number >= count) break;
    bool adds = false;
    if constexpr (of_rest) {
      const int square = square_of(place_of(number / channels));
      const bool full = is_full(arrays.marks, square);
      if (!full && !meets_rest(arrays.marks, square)) continue;
      adds = !full && arrays.marks[2 * square] > 0;
    }
    if constexpr (starts) {
      sums[number] = start_of_sum;
    } else {
      const float sum = number_of(sums + number, copies, count, arrays.unit[0]);
      arrays.result[number] = adds ? arrays.result[number] + sum : sum;
    }
  }
}
