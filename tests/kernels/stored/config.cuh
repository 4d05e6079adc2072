#pragma once
// The sizes and switches of one kernel, by stored.py.
#include "trace/scalars.cuh"

constexpr int threads = 128;  // of a block
constexpr int lanes = 32;  // of a warp
constexpr int warps = 4;  // of a block
constexpr int rows = 4;  // of a warp
constexpr int tiles = 192;  // of samples
constexpr int window_cells = 604;  // the most cells of a window

// How the channels of a texel are divided.
struct Channels {
  static constexpr int count = 4;
  static constexpr int width = 4;
  static constexpr int parts = 1;
  static constexpr bool aligned = true;
};

// Squares of texels, and the windows on them.
struct Stored {
  static constexpr int side = 32;  // of a square of texels
  static constexpr int down = 256;  // the texels of a texture
  static constexpr int across = 192;
  static constexpr int squares_down = 8;  // of a texture
  static constexpr int squares_across = 6;
  static constexpr int squares = 48;  // of all textures
  static constexpr int most_windows = 128;  // of a square, so that they are added in order
};
