// The adjoint of mip levels. A texel is a mean, so each texel that it covers receives an equal share of its cotangent.
//
// `mip_kernel.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "trace/warp.cuh"
#include "levels/config.cuh"
#include "levels_adjoint/traced.cuh"
#include "filters/columns.cuh"

// The cotangent of a texel below `level`, and its share of `total`, the sum of all cotangents of the texel of `level`.
template <int level> DEVICE Texel with_share(Texel finer, const Texel& total) {
  constexpr int halved = is_halved(deep, level) + is_halved(down, level) + is_halved(across, level);
  constexpr float share = 1.0f / (1 << halved);
  for (int n = 0; n < width; n++) {
    const Stored part = converted<Stored, float>(converted<float, Stored>(total.v[n]) * share);
    finer.v[n] = converted<Stored, float>(converted<float, Stored>(finer.v[n]) + converted<float, Stored>(part));
  }
  return finer;
}

// The sum of all cotangents of the texel of `level` that covers the column. `above` is that of the texel of `last`, a coarser
// level.
template <int level, int last> DEVICE Texel total_of(const Arrays& arrays, const Column& at, const Texel& above) {
  if constexpr (level == last) {
    return above;
  } else {
    const Texel given = load_texel(arrays.chain + place_in_chain<level>(at, 0, 0));
    return with_share<level + 1>(given, total_of<level + 1, last>(arrays, at, above));
  }
}

// Distributes `total`, that of the texel of `level` that covers slice `z` and row `y` of the column, among the texels below.
template <int level> DEVICE void distribute(const Arrays& arrays, const Column& at, const Texel& total, int z, int y) {
  if constexpr (level == 0) {
    store_texel(arrays.result + place_in_level<0>(at, z, y), total);
  } else {
    constexpr int along_deep = 1 + is_halved(deep, level), along_down = 1 + is_halved(down, level);
#pragma unroll
    for (int k = 0; k < along_deep * along_down; k++) {
      const int slice = z + k / along_down * covered(deep, level - 1), row = y + k % along_down * covered(down, level - 1);
      const Texel given = load_texel(arrays.chain + place_in_chain<level - 1>(at, slice, row));
      distribute<level - 1>(arrays, at, with_share<level>(given, total), slice, row);
    }
  }
}

DEVICE void run(const Arrays& arrays) {
  // The first warps compute the totals of the texels that warps of other rows and slices need, too.
  constexpr int first = warps_across * lanes;
  __shared__ Texel totals[first];
  const Column at = column_of_lane();
  if (threadIdx.x < first && at.exists) {
    const Texel last = load_texel(arrays.coarse ? arrays.coarse + place_in_level<levels>(at, 0, 0)
                                                : arrays.chain + place_in_chain<levels>(at, 0, 0));
    totals[threadIdx.x] = total_of<levels_of_block, levels>(arrays, at, last);
  }
  wait_for_block();
  if (!at.exists) return;
  const Texel total = total_of<levels_of_warp, levels_of_block>(arrays, at, totals[threadIdx.x % first]);
  distribute<levels_of_warp>(arrays, at, total, 0, 0);
}
