#pragma once
// What a thread of one kernel computes, by exact_sums.py.
#include "trace/scalars.cuh"
#include "join/config.cuh"

// What the kernel reads and writes.
struct Arrays {
  const int* marks;
  float* totals;
  const int* unit;
  float* result;
};

// The kernel.
DEVICE void run(const Arrays& arrays);
extern "C" __global__ void __launch_bounds__(threads) texture_zeros(const int* __restrict__ marks, float* __restrict__ totals) {
  run(Arrays{marks, totals, nullptr, nullptr});
}
