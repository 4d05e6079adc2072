#pragma once
// What a thread of one kernel computes, by gather_source.py.
#include "samples/samples.cuh"
#include "gather/config.cuh"

// What the kernel reads and writes.
struct Arrays {
  const float* values;
  const float* views;
  float* totals;
  const int* first_row;
};

// The offsets of a sample in memory.
DEVICE Offsets offsets_of(Position at) {
  const int v0 = wrapped_mul(0, 49152);
  const int v1 = wrapped_mul(at.y, 192);
  const int v2 = wrapped_add(v1, at.x);
  return {v2, v2, v0};
}

// Positions, first taps and weights along the axes (y, x).
DEVICE AxisTaps taps_at(const View& view, const float (&pixel)[dims]) {
  const float v0 = view.operands[2] * pixel[0];
  const float v1 = view.operands[4] + v0;
  const float v2 = view.operands[3] * pixel[1];
  const float v3 = v1 + v2;
  const float v4 = view.operands[5] * pixel[0];
  const float v5 = view.operands[7] + v4;
  const float v6 = view.operands[6] * pixel[1];
  const float v7 = v5 + v6;
  return {{v7, v3}, {0, 0}, {{0.0e+00f, 0.0e+00f}, {0.0e+00f, 0.0e+00f}}};
}

// All samples are added.
DEVICE bool is_added(const View& view, const float (&pixel)[dims], int first_row) {
  return true;
}

// The kernel.
DEVICE void run(const Arrays& arrays);
extern "C" __global__ void __launch_bounds__(threads) texture_gather(const float* __restrict__ values, const float* __restrict__ views, float* __restrict__ totals) {
  run(Arrays{values, views, totals, nullptr});
}
