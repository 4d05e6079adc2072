// Mip levels, each computed from the level before. A lane averages the texels of its column, the lanes of a warp their
// means, and the last warp of a block the means of all warps.
//
// `mip_kernel.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "trace/warp.cuh"
#include "levels/config.cuh"
#include "levels/traced.cuh"
#include "filters/columns.cuh"

typedef Row<float, width> Mean;

// The sum of two large texels would be infinite, and their mean is not.
DEVICE float mean_of(float a, float b) { return rounded_add(rounded_mul(a, 0.5f), rounded_mul(b, 0.5f)); }

DEVICE Mean mean_of(const Mean& a, const Mean& b) {
  Mean mean;
  for (int k = 0; k < width; k++) mean.v[k] = mean_of(a.v[k], b.v[k]);
  return mean;
}

DEVICE Mean widened(const Texel& texel) {
  Mean mean;
  for (int k = 0; k < width; k++) mean.v[k] = converted<float, Stored>(texel.v[k]);
  return mean;
}

DEVICE Texel rounded(const Mean& mean) {
  Texel texel;
  for (int k = 0; k < width; k++) texel.v[k] = converted<Stored, float>(mean.v[k]);
  return texel;
}

// The mean along the depth and down of texels of the level before `level`. Means are taken along z, y and x, in this order,
// and rounded once to the dtype of texels.
template <int level, class Finer> DEVICE Mean mean_of_rows(Finer finer) {
  auto mean_in_depth = [&](int y) {
    const Mean near = widened(finer(0, y));
    if constexpr (is_halved(deep, level)) return mean_of(near, widened(finer(1, y)));
    else return near;
  };
  if constexpr (is_halved(down, level)) return mean_of(mean_in_depth(0), mean_in_depth(1));
  else return mean_in_depth(0);
}

// Computes and stores the texel of `level` that covers slice `z` and row `y` of the column.
template <int level> DEVICE Texel texel_of(const Arrays& arrays, const Column& at, const Texel* column, int z, int y) {
  if constexpr (level == 0) {
    return column[z * rows_down + y];
  } else {
    Mean mean = mean_of_rows<level>([&](int far, int low) {
      constexpr int of_deep = covered(deep, level - 1), of_down = covered(down, level - 1);
      return texel_of<level - 1>(arrays, at, column, z + far * of_deep, y + low * of_down);
    });
    if constexpr (is_halved(across, level))
      for (int k = 0; k < width; k++) mean.v[k] = mean_of(mean.v[k], of_lane_xor(mean.v[k], lanes_of_texel << (level - 1)));
    const Texel texel = rounded(mean);
    if (at.exists && at.x % covered(across, level) == 0) store_texel(arrays.chain + place_in_chain<level>(at, z, y), texel);
    return texel;
  }
}

// The number of texels of `level` in a tile.
DEVICE constexpr int tile_texels(int level) {
  return tile_deep / covered(deep, level) * (tile_down / covered(down, level)) * (tile_across / covered(across, level));
}

// Computes and stores the texels of a tile from `level` on; `finer` are those of the level before, in shared memory.
template <int level> DEVICE void finish(const Arrays& arrays, const Column& tile, const Texel* finer, Texel* texels) {
  constexpr int of_deep = covered(deep, level), of_down = covered(down, level), of_across = covered(across, level);
  constexpr int rows = tile_down / of_down, columns = tile_across / of_across;
  constexpr int along_deep = 1 + is_halved(deep, level), along_down = 1 + is_halved(down, level);
  constexpr int along_across = 1 + is_halved(across, level);
  const int lane = threadIdx.x % lanes, part = lane % lanes_of_texel;
  wait_for_lanes();
  for (int k = lane / lanes_of_texel; k < tile_texels(level); k += columns_of_warp) {
    const int x = k % columns, y = k / columns % rows, z = k / columns / rows;
    auto mean_of_column = [&](int beside) {
      return mean_of_rows<level>([&](int far, int low) {
        const int row = (z * along_deep + far) * rows * along_down + y * along_down + low;
        return finer[((row * columns + x) * along_across + beside) * lanes_of_texel + part];
      });
    };
    Mean mean = mean_of_column(0);
    if constexpr (is_halved(across, level)) mean = mean_of(mean, mean_of_column(1));
    const Texel texel = texels[k * lanes_of_texel + part] = rounded(mean);
    Column at = tile;
    at.x += x * of_across;
    if (at.x < across) store_texel(arrays.chain + place_in_chain<level>(at, z * of_deep, y * of_down), texel);
  }
  if constexpr (level < levels) finish<level + 1>(arrays, tile, texels, texels + tile_texels(level) * lanes_of_texel);
}

DEVICE void run(const Arrays& arrays) {
  const Column at = column_of_lane();
  Texel column[rows_deep * rows_down] = {};
#pragma unroll
  for (int k = 0; k < rows_deep * rows_down; k++) {
    const int z = k / rows_down, y = k % rows_down;
    if (!at.exists) continue;
    if constexpr (stores_finest) column[k] = load_texel(arrays.values + place_in_level<0>(at, z, y));
    else column[k] = load_texel(arrays.chain + place_in_chain<0>(at, z, y));
  }
  if constexpr (stores_finest) {
#pragma unroll
    for (int k = 0; k < rows_deep * rows_down; k++)
      if (at.exists) store_texel(arrays.chain + place_in_chain<0>(at, k / rows_down, k % rows_down), column[k]);
  }
  const Texel texel = texel_of<levels_of_warp>(arrays, at, column, 0, 0);
  if constexpr (levels > levels_of_warp) {
    constexpr int warps = warps_deep * warps_down * warps_across, texels = tile_texels(levels_of_warp) * lanes_of_texel;
    constexpr int of_across = covered(across, levels_of_warp), columns = tile_across / of_across;
    __shared__ Texel tiles[2 * texels];  // each level is at most half of the one before
    const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes, column = lane / lanes_of_texel;
    const int x = (warp % warps_across * columns_of_warp + column) / of_across;
    if (column % of_across == 0)
      tiles[(warp / warps_across * columns + x) * lanes_of_texel + lane % lanes_of_texel] = texel;
    wait_for_block();
    if (warp < warps - 1) return;
    Column tile = at;
    tile.z -= tile_deep - rows_deep, tile.y -= tile_down - rows_down, tile.x -= tile_across - columns_of_warp + column;
    finish<levels_of_warp + 1>(arrays, tile, tiles, tiles + texels);
  }
}
