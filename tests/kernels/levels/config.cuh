#pragma once
// The sizes and switches of one kernel, by mip_kernel.py.
#include "trace/scalars.cuh"

constexpr int threads = 512;  // of a block
constexpr int levels = 6;  // that the kernel computes
constexpr int levels_of_block = 6;  // that a block computes alone
constexpr int levels_of_warp = 3;  // that a warp computes alone
constexpr int images = 1;  // of a level
constexpr int deep = 1;  // of the finer level
constexpr int down = 256;
constexpr int across = 192;
constexpr int warps_deep = 1;  // of a block
constexpr int warps_down = 8;
constexpr int warps_across = 2;
constexpr int channels = 4;  // of a texel
constexpr int width = 4;  // the channels of a lane
constexpr int lanes_of_texel = 1;  // with different channels
constexpr int blocks_of_texel = 1;  // with different channels
constexpr bool is_aligned = true;
constexpr bool stores_finest = true;  // whether the finer level is copied to the chain
constexpr int chain_texels = 65535;  // the texels of a whole chain
DEVICE constexpr int start_of(int k) { constexpr int all[] = {0, 49152, 61440, 64512, 65280, 65472, 65520}; return all[k]; }  // the first texel of a level in a chain
DEVICE constexpr int level_texels(int k) { constexpr int all[] = {49152, 12288, 3072, 768, 192, 48, 12}; return all[k]; }  // the texels of a level

typedef float Stored;
