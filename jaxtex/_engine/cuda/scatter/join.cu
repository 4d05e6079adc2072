// Turns the sums of integers to which `adjoint.cu` has added into numbers.
//
// `exact_sums.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "join/config.cuh"
#include "join/traced.cuh"
#include "scatter/exact_sums.cuh"

DEVICE void run(const Arrays& arrays) {
  const int64 first = (int64)blockIdx.x * threads * steps + threadIdx.x;
  const uint64* const sums = (const uint64*)arrays.totals;
#pragma unroll
  for (int k = 0; k < steps; k++) {
    const int64 number = first + k * threads;
    if (number < count) arrays.result[number] = number_of(sums + number, copies, count, arrays.unit[0]);
  }
}
