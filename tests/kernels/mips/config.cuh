#pragma once
// The sizes and switches of one kernel, by mip_kernel.py.
#include "trace/scalars.cuh"

constexpr int threads = 128;  // of a block
constexpr int levels = 2;  // that the kernel computes
constexpr int chains = 1;
constexpr int images = 1;  // of a level
constexpr int deep = 1;  // of the finer level
constexpr int down = 256;
constexpr int across = 192;
constexpr bool is_deep_halved = false;
constexpr bool is_down_halved = true;
constexpr int rows_deep = 1;  // the texels of a lane
constexpr int rows_down = 4;
constexpr int channels = 4;  // of a texel
constexpr int width = 4;  // the channels of a lane
constexpr int parts = 1;  // the lanes of a texel
constexpr bool is_aligned = true;
constexpr bool stores_finest = true;  // whether the finer level is copied to the chain
constexpr int chain_texels = 65535;  // the texels of a whole chain
DEVICE constexpr int start_of(int k) { constexpr int all[] = {0, 49152, 61440}; return all[k]; }  // the first texel of a level in a chain
DEVICE constexpr int level_texels(int k) { constexpr int all[] = {49152, 12288, 3072}; return all[k]; }  // the texels of a level

typedef float Stored;
