#pragma once
// The sizes and switches of one kernel, by plane_source.py.
#include "trace/scalars.cuh"

constexpr int threads = 512;  // of a block
constexpr int steps = 1;  // the samples of a thread at a time
constexpr int planes = 4;  // the planes of a block
constexpr int groups = 16;  // of planes of an image
constexpr int shares = 2;  // the blocks of a group of planes
constexpr int plane_texels = 1536;
constexpr int samples_of_image = 960;
constexpr int tiles_of_image = 2;
constexpr int width = 1;  // the channels of a plane
constexpr int num_results = 1;

typedef float Stored;
typedef Row<float, 1> Sum;
typedef Row<float, 1> Result;
typedef Row<float, 1> State;

// How samples are divided among lanes.
struct Tiles {
  static constexpr int deep = 1;
  static constexpr int down = 1;
  static constexpr int across = 960;
  static constexpr int lanes_deep = 1;
  static constexpr int lanes_down = 1;
  static constexpr int lanes_across = 512;
  static constexpr int steps_deep = 1;
  static constexpr int steps_down = 1;
  static constexpr int steps_across = 1;
  static constexpr bool spread = true;
  static constexpr bool by_column = false;
};

// Which numbers of each row of an array are texels.
struct ResultSlice {
  static constexpr int row = 1;
  static constexpr int start = 0;
  static constexpr int texels = 1;
  static constexpr int channels = 1;
};
