#pragma once
// What a thread of one kernel computes, by stored.py.
#include "trace/scalars.cuh"
#include "stored/config.cuh"

// What the kernel reads and writes.
struct Arrays {
  const float* windows;
  const int* boxes;
  const int* lists;
  const int* marks;
  const float* totals;
  const int* unit;
  float* result;
};

// The kernel.
DEVICE void run(const Arrays& arrays);
extern "C" __global__ void __launch_bounds__(threads) texture_windows(const float* __restrict__ windows, const int* __restrict__ boxes, const int* __restrict__ lists, const int* __restrict__ marks, const float* __restrict__ totals, const int* __restrict__ unit, float* __restrict__ result) {
  run(Arrays{windows, boxes, lists, marks, totals, unit, result});
}
