#pragma once
// The kernel, by mip_kernel.py; no function of it is traced.
#include "trace/scalars.cuh"
#include "levels/config.cuh"

// What the kernel reads and writes.
struct Arrays {
  const float* chain;
  const float* coarse;
  float* result;
};

// The kernel.
DEVICE void run(const Arrays& arrays);
extern "C" __global__ void __launch_bounds__(threads) texture_mip_levels(const float* __restrict__ chain, const float* __restrict__ coarse, float* __restrict__ result) {
  run(Arrays{chain, coarse, result});
}
