#pragma once
// The texels of a lane: a column of the finer level, and in a volume adjacent columns along the depth.

#include "trace/scalars.cuh"
#include "mips/config.cuh"

typedef Row<Stored, width> Texel;
constexpr int lanes = 32;

// A lane's column: the chain, the image in the chain, the first texel of the column, and the first channel of the lane.
struct Column { int chain, image, z, y, x, channel; bool exists; };

DEVICE Column column_of_lane() {
  constexpr int tiles_across = (across + lanes - 1) / lanes, tiles_down = down / rows_down, tiles_deep = deep / rows_deep;
  const int warp = blockIdx.x * (threads / lanes) + threadIdx.x / lanes;
  const int tile = warp / parts, row = tile / tiles_across, slice = row / tiles_down, image = slice / tiles_deep;
  Column at;
  at.chain = image / images, at.image = image % images;
  at.z = slice % tiles_deep * rows_deep, at.y = row % tiles_down * rows_down;
  at.x = tile % tiles_across * lanes + threadIdx.x % lanes;
  at.channel = min(warp % parts * width, channels - width);
  at.exists = at.x < across && at.chain < chains;
  return at;
}

// The number of texels of the finer level that a texel of `level` covers along an axis.
DEVICE constexpr int covered(bool is_halved, int level) { return is_halved ? 1 << level : 1; }

// The place of the lane's first channel of the texel of `level` that covers row `y` and slice `z` of the column. The array
// holds `texels` texels for each chain, and those of the level begin at `start`.
template <int level> DEVICE int64 place_of(const Column& at, int z, int y, int texels, int start) {
  constexpr int of_deep = covered(is_deep_halved, level), of_down = covered(is_down_halved, level), of_across = 1 << level;
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

DEVICE Texel load_texel(const Stored* from) {
  if constexpr (is_aligned) return load_aligned_row<width>(from);
  else return load_row_by_pair<width>(from);
}
DEVICE void store_texel(Stored* to, const Texel& texel) {
  if constexpr (is_aligned) store_aligned_row(to, texel);
  else store_row(to, texel);
}
