#pragma once
// What a thread of one kernel computes, by exact_sums.py.
#include "trace/scalars.cuh"
#include "join/config.cuh"

// What the kernel reads and writes.
struct Arrays {
  const float* totals;
  const int* unit;
  float* result;
};

// The kernel.
DEVICE void run(const Arrays& arrays);
extern "C" __global__ void __launch_bounds__(threads) texture_sums(const float* __restrict__ totals, const int* __restrict__ unit, float* __restrict__ result) {
  run(Arrays{totals, unit, result});
}
