#pragma once
// The sizes and switches of one kernel, by exact_sums.py.
#include "trace/scalars.cuh"

constexpr int threads = 256;  // of a block
constexpr int steps = 8;  // the numbers of a thread
constexpr int num_blocks = 6;  // of the launch
constexpr int count = 196608;  // of numbers
constexpr int channels = 4;  // of a texel
constexpr int copies = 1;  // of all sums; blocks have added to them in turn
constexpr int lanes = 32;  // of a warp
constexpr bool starts = true;  // whether the kernel starts the sums of some squares
