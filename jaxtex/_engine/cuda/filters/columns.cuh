#pragma once
// A block has a tile of the finer level, and a lane some channels of a column of it; in a volume, of adjacent columns along
// the depth. Adjacent lanes have the channels of one column, then those of the next column.

#include "trace/scalars.cuh"
#include "levels/config.cuh"

typedef Row<Stored, width> Texel;
constexpr int lanes = 32;

// The number of texels of the finer level that a texel of `level` covers along an axis of so many texels.
DEVICE constexpr int covered(int size, int level) { return size < 1 << level ? size : 1 << level; }
// Whether an axis is halved from the level before `level`: one of a single texel is not.
DEVICE constexpr bool is_halved(int size, int level) { return size >> (level - 1) > 1; }

// The texels of a lane, and those of a block.
constexpr int rows_deep = covered(deep, levels_of_warp), rows_down = covered(down, levels_of_warp);
constexpr int tile_deep = rows_deep * warps_deep, tile_down = rows_down * warps_down;
constexpr int columns_of_warp = lanes / lanes_of_texel, tile_across = columns_of_warp * warps_across;

// The chain, the image in the chain, the first texel of a column or a tile, and the first channel of the lane.
struct Column { int chain, image, z, y, x, channel; bool exists; };

DEVICE Column column_of_lane() {
  constexpr int tiles_across = (across + tile_across - 1) / tile_across;
  constexpr int tiles_down = down / tile_down, tiles_deep = deep / tile_deep;
  const int warp = threadIdx.x / lanes, place = warp / warps_across, lane = threadIdx.x % lanes;
  const int part = blockIdx.x % blocks_of_texel * lanes_of_texel + lane % lanes_of_texel;
  const int tile = blockIdx.x / blocks_of_texel, row = tile / tiles_across, slice = row / tiles_down;
  const int image = slice / tiles_deep;
  Column at;
  at.chain = image / images, at.image = image % images;
  at.z = slice % tiles_deep * tile_deep + place / warps_down * rows_deep;
  at.y = row % tiles_down * tile_down + place % warps_down * rows_down;
  at.x = tile % tiles_across * tile_across + warp % warps_across * columns_of_warp + lane / lanes_of_texel;
  at.channel = min(part * width, channels - width);
  at.exists = at.x < across;
  return at;
}

// The place of the lane's first channel of the texel of `level` that covers row `y` and slice `z` of the column. The array
// holds `texels` texels for each chain, and those of the level begin at `start`.
template <int level> DEVICE int64 place_of(const Column& at, int z, int y, int texels, int start) {
  constexpr int of_deep = covered(deep, level), of_down = covered(down, level), of_across = covered(across, level);
  const int slice = at.image * (deep / of_deep) + (at.z + z) / of_deep;
  const int row = slice * (down / of_down) + (at.y + y) / of_down;
  return ((int64)at.chain * texels + start + row * (across / of_across) + at.x / of_across) * channels + at.channel;
}

template <int level> DEVICE int64 place_in_chain(const Column& at, int z, int y) {
  return place_of<level>(at, z, y, chain_texels, start_of(level));
}

template <int level> DEVICE int64 place_in_level(const Column& at, int z, int y) {
  return place_of<level>(at, z, y, level_texels(level), 0);
}

#ifdef __CUDACC__
// After it, all threads of a block see all earlier writes of the block.
DEVICE void wait_for_block() { __syncthreads(); }
#endif

DEVICE Texel load_texel(const Stored* from) {
  if constexpr (is_aligned) return load_aligned_row<width>(from);
  else return load_row_by_pair<width>(from);
}
DEVICE void store_texel(Stored* to, const Texel& texel) {
  if constexpr (is_aligned) store_aligned_row(to, texel);
  else store_row(to, texel);
}
