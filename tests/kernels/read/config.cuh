#pragma once
// The sizes and switches of one kernel, by read_source.py.
#include "trace/scalars.cuh"

constexpr int threads = 128;  // of a block
constexpr int steps = 1;  // the samples of a thread
constexpr int parts = 1;  // the threads of a sample
constexpr int width = 4;  // the channels of a thread
constexpr int result_width = 4;  // the channels of a result that a thread stores
constexpr int num_results = 1;  // of a read: more than one for several derivatives
constexpr int num_reads = 0;  // of which the result is the sum; 0 for one read
constexpr int group_size = 1;  // the reads of a group, which share indices on all summed axes but the last
constexpr int reads_at_once = 1;  // the reads of a group whose loads overlap
constexpr bool asks_inside = false;  // whether reads whose taps are inside are told apart
constexpr bool stores_aligned = true;
constexpr bool in_lines = false;  // whether warps load coordinates and store results in lines of memory
constexpr int num_noted = 0;  // the tiles, of which the noted ones are read; 0 reads all
constexpr int num_blocks = 384;  // of the launch

typedef float Stored;
typedef Row<float, 4> Sum;
typedef Row<float, 4> Result;
typedef Row<float, 4> State;

// How samples are divided among lanes.
struct Tiles {
  static constexpr int deep = 1;
  static constexpr int down = 256;
  static constexpr int across = 192;
  static constexpr int lanes_deep = 1;
  static constexpr int lanes_down = 8;
  static constexpr int lanes_across = 16;
  static constexpr int steps_deep = 1;
  static constexpr int steps_down = 1;
  static constexpr int steps_across = 1;
  static constexpr bool spread = true;
  static constexpr bool by_column = false;
};

// Which numbers of each row of an array are texels.
struct ResultSlice {
  static constexpr int row = 4;
  static constexpr int start = 0;
  static constexpr int texels = 1;
  static constexpr int channels = 4;
};
