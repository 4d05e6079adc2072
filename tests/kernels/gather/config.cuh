#pragma once
// The sizes and switches of one kernel, by gather_source.py.
#include "trace/scalars.cuh"

constexpr int threads = 128;  // of a block
constexpr int dims = 2;  // the axes
constexpr int num_taps = 2;  // along an axis
DEVICE constexpr int own(int k) { constexpr int all[] = {2, 2}; return all[k]; }  // the texels of a thread along an axis
constexpr int most_own = 2;
constexpr int owned = 4;  // the texels of a thread
DEVICE constexpr bool is_tent(int k) { constexpr bool all[] = {true, true}; return all[k]; }  // whether weights follow from positions
DEVICE constexpr float origin(int k) { constexpr float all[] = {5.0e-01f, 5.0e-01f}; return all[k]; }  // the center of the first texel
DEVICE constexpr int size(int k) { constexpr int all[] = {256, 192}; return all[k]; }  // of the texture
DEVICE constexpr int count(int k) { constexpr int all[] = {256, 192}; return all[k]; }  // how many texels look for their samples
constexpr bool finds_rows = false;  // whether the texels begin at a given row
constexpr int images = 1;  // that fall on one texture
DEVICE constexpr int extent(int k) { constexpr int all[] = {192, 256, 1}; return all[k]; }  // of an image along x, y and z
constexpr int numbers = 24;  // of a view
constexpr int operands_of_view = 10;
constexpr int value_step = 1;  // from a value to that beside it

// How the channels of a texel are divided.
struct Channels {
  static constexpr int count = 4;
  static constexpr int width = 4;
  static constexpr int parts = 1;
  static constexpr bool aligned = true;
};

// Which numbers of each row of an array are texels.
struct ValueSlice {
  static constexpr int row = 4;
  static constexpr int start = 0;
  static constexpr int texels = 1;
  static constexpr int channels = 4;
};

// The channels of a value that a thread takes.
typedef Row<float, Channels::width> Value;

// How samples are divided among lanes.
struct Tiles {
  static constexpr int deep = 1;
  static constexpr int down = 256;
  static constexpr int across = 192;
  static constexpr int lanes_deep = 1;
  static constexpr int lanes_down = 16;
  static constexpr int lanes_across = 8;
  static constexpr int steps_deep = 1;
  static constexpr int steps_down = 2;
  static constexpr int steps_across = 2;
  static constexpr bool spread = false;
  static constexpr bool by_column = false;
};
