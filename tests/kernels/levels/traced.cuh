#pragma once
// The kernel, by mip_kernel.py; no function of it is traced.
#include "trace/scalars.cuh"
#include "levels/config.cuh"

// What the kernel reads and writes.
struct Arrays {
  const float* values;
  float* chain;
};

// The kernel.
DEVICE void run(const Arrays& arrays);
extern "C" __global__ void __launch_bounds__(threads) texture_mip_levels(const float* __restrict__ values, float* __restrict__ chain) {
  run(Arrays{values, chain});
}
