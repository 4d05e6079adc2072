// Mip levels, each computed from the level before. A lane averages the texels of its column. Then the lanes of a warp
// average their means.
//
// `mip_kernel.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "trace/warp.cuh"
#include "mips/config.cuh"
#include "mips/traced.cuh"
#include "filters/columns.cuh"

typedef Row<float, width> Mean;

DEVICE float mean_of(float a, float b) { return rounded_mul(rounded_add(a, b), 0.5f); }

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

// Computes and stores the texel of `level` that covers slice `z` and row `y` of the column. Means are taken along z, y
// and x, in this order, and rounded once to the dtype of texels.
template <int level> DEVICE Texel texel_of(const Arrays& arrays, const Column& at, const Texel* column, int z, int y) {
  if constexpr (level == 0) {
    return column[z * rows_down + y];
  } else {
    constexpr int half_deep = covered(is_deep_halved, level - 1), half_down = covered(is_down_halved, level - 1);
    auto mean_in_depth = [&](int y) {
      const Mean near = widened(texel_of<level - 1>(arrays, at, column, z, y));
      if constexpr (!is_deep_halved) return near;
      else return mean_of(near, widened(texel_of<level - 1>(arrays, at, column, z + half_deep, y)));
    };
    Mean mean = mean_in_depth(y);
    if constexpr (is_down_halved) mean = mean_of(mean, mean_in_depth(y + half_down));
    Texel texel;
    for (int k = 0; k < width; k++) {
      const float beside = of_lane_xor(mean.v[k], 1 << (level - 1));
      texel.v[k] = converted<Stored, float>(mean_of(mean.v[k], beside));
    }
    if (at.exists && at.x % (1 << level) == 0) {
      store_texel(arrays.chain + place_in_chain<level>(at, z, y), texel);
      if constexpr (level == levels) store_texel(arrays.coarse + place_in_level<level>(at, z, y), texel);
    }
    return texel;
  }
}

DEVICE void run(const Arrays& arrays) {
  const Column at = column_of_lane();
  Texel column[rows_deep * rows_down] = {};
#pragma unroll
  for (int k = 0; k < rows_deep * rows_down; k++)
    if (at.exists) column[k] = load_texel(arrays.values + place_in_level<0>(at, k / rows_down, k % rows_down));
  if constexpr (stores_finest) {
#pragma unroll
    for (int k = 0; k < rows_deep * rows_down; k++)
      if (at.exists) store_texel(arrays.chain + place_in_chain<0>(at, k / rows_down, k % rows_down), column[k]);
  }
  texel_of<levels>(arrays, at, column, 0, 0);
}
