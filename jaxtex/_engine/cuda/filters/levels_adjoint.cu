// The adjoint of mip levels. A texel is a mean, so each texel that it covers receives an equal share of its cotangent.
//
// `mip_kernel.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "mips/config.cuh"
#include "mips_adjoint/traced.cuh"
#include "filters/columns.cuh"

// Distributes `total`, the sum of all cotangents of the texel of `level` that covers slice `z` and row `y` of the column,
// among the texels below it.
template <int level> DEVICE void distribute(const Arrays& arrays, const Column& at, const Texel& total, int z, int y) {
  if constexpr (level == 0) {
    store_texel(arrays.result + place_in_level<0>(at, z, y), total);
  } else {
    constexpr int half_deep = covered(is_deep_halved, level - 1), half_down = covered(is_down_halved, level - 1);
    constexpr float share = 0.5f * (is_deep_halved ? 0.5f : 1) * (is_down_halved ? 0.5f : 1);
#pragma unroll
    for (int k = 0; k < (1 + is_deep_halved) * (1 + is_down_halved); k++) {
      const int slice = z + k / (1 + is_down_halved) * half_deep, row = y + k % (1 + is_down_halved) * half_down;
      Texel finer = load_texel(arrays.chain + place_in_chain<level - 1>(at, slice, row));
      for (int n = 0; n < width; n++) {
        const Stored part = converted<Stored, float>(converted<float, Stored>(total.v[n]) * share);
        const float sum = converted<float, Stored>(finer.v[n]) + converted<float, Stored>(part);
        finer.v[n] = converted<Stored, float>(sum);
      }
      distribute<level - 1>(arrays, at, finer, slice, row);
    }
  }
}

DEVICE void run(const Arrays& arrays) {
  const Column at = column_of_lane();
  if (at.exists) distribute<levels>(arrays, at, load_texel(arrays.coarse + place_in_level<levels>(at, 0, 0)), 0, 0);
}
