#pragma once
// The sizes and switches of one kernel, by window_source.py.
#include "trace/scalars.cuh"

constexpr int threads = 128;  // of a block
constexpr int blocks = 6;  // that a multiprocessor holds at once
constexpr int lanes = 32;  // the threads of a warp
constexpr int warps = 4;  // of a block
constexpr int num_blocks = 96;  // of the launch
constexpr int tiles = 384;  // of samples
constexpr int steps = 4;  // the samples of a lane in a tile
constexpr int batch = 4;  // the samples of which a lane loads the values at once
constexpr bool keeps_coords = true;  // whether a lane keeps the coordinates of its samples
constexpr int lanes_per_sample = 1;  // some of which may take no part
constexpr int axes = 2;  // of a window: for textures and starts, then of a texture
constexpr int first_axis = 0;  // that is one of a texture
DEVICE constexpr int size_of(int k) { constexpr int all[] = {1, 1}; return all[k]; }  // of a texture along an axis; 1 if it is not used
constexpr int num_walks = 1;  // that add to texels: one for each level that is blended
constexpr int window_cells = 380;  // the most cells of a window
constexpr bool deterministic = false;  // whether sums are integers, the same in any order
constexpr bool stores = false;  // whether windows are stored, and not added to texels
constexpr bool adds_rest = false;  // whether the kernel adds what is not stored
constexpr int crowd_cells = 76;  // the most cells of a crowded window
constexpr int most_apart = 24;  // tiles whose samples lie too far apart for windows
constexpr int words = 1;  // of 32 bits that a sum takes
constexpr int piece_width = 4;  // the numbers that are added to memory at once
constexpr bool takes_runs = false;  // whether a lane adds up runs of samples in one cell
constexpr bool sets_zero = false;  // whether a warp sets the texture of its samples to zero
constexpr bool writes_whole = false;  // whether a warp writes that texture once, with its zeros
constexpr int texture_size = 196608;  // the totals of a texture
constexpr int copies = 1;  // of all totals; blocks add to them in turn
constexpr int size_of_copy = 196608;  // the totals of a copy
constexpr int images = 0;  // that the gather kernel may have added; 0 for none
constexpr bool looks_first = false;  // whether a block looks first if any image remains
constexpr int numbers_of_view = 0;
constexpr bool skips = false;  // whether some samples are not added
constexpr bool pulls = true;  // whether operands have cotangents
constexpr int num_slopes = 2;  // the derivatives along coordinates
constexpr int num_cotangents = 2;  // of the operands of a sample
constexpr int lanes_of_sum = 1;  // that add up cotangents which reads of a sum share
constexpr bool adds_cotangents = false;  // whether reads of a sum share cotangents
constexpr bool steps_along_sum = false;  // whether a lane's samples are reads of one sum
constexpr int num_sums = 0;  // the operands whose cotangents a tile adds up

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
  static constexpr int lanes_down = 4;
  static constexpr int lanes_across = 8;
  static constexpr int steps_deep = 1;
  static constexpr int steps_down = 2;
  static constexpr int steps_across = 2;
  static constexpr bool spread = false;
  static constexpr bool by_column = false;
};
