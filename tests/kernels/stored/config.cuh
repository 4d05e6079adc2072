#pragma once
// The sizes and switches of one kernel, by stored.py.
#include "trace/scalars.cuh"

constexpr int threads = 128;  // of a block
constexpr int lanes = 32;  // of a warp
constexpr int warps = 4;  // of a block
constexpr int rows = 4;  // of a warp
constexpr int together = 1;  // windows that a warp loads
constexpr int tiles = 192;  // of samples
constexpr int window_cells = 604;  // the most cells of a window

// How the channels of a texel are divided.
struct Channels {
  static constexpr int count = 4;
  static constexpr int width = 4;
  static constexpr int parts = 1;
  static constexpr bool aligned = true;
};
