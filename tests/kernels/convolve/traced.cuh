#pragma once
// The kernel, by convolution_kernel.py; no function of it is traced.
#include "trace/scalars.cuh"
#include "convolve/config.cuh"

// What the kernel reads and writes.
struct Arrays {
  const float* values;
  float* result;
};

// The kernel.
DEVICE void run(const Arrays& arrays);
extern "C" __global__ void __launch_bounds__(threads) texture_convolve(const float* __restrict__ values, float* __restrict__ result) {
  run(Arrays{values, result});
}
