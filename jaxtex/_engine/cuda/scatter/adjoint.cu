// The adjoint of a read: each sample adds its value, times the weight of each tap, to the texel of the tap.
//
// The number of additions to memory bounds the speed. So a warp adds up a tile of samples in a window of its own in
// shared memory, without atomic additions: lanes that add to one texel take turns. Then it adds each texel of the
// window to memory once. The window covers unbounded indices; address rules are applied when it is added to memory.
// If the taps of a tile do not fit into a window, as with random coordinates, each sample is added to memory by itself.
//
// `window_source.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "trace/warp.cuh"
#include "samples/samples.cuh"
#include "scatter/config.cuh"
#include "scatter/types.cuh"
#include "scatter/traced.cuh"
#include "scatter/window.cuh"

// Adds the samples of a tile by walk number `walk` and all later ones.
template <int walk>
DEVICE void add_walks(const Arrays& arrays, const Totals& totals, float* window, float* own_texture, int tile,
                      const Lane& lane, Sums& sums) {
  if constexpr (walk < num_walks) {
    add_tile<walk>(arrays, totals, window, own_texture, tile, lane, sums);
    add_walks<walk + 1>(arrays, totals, window, own_texture, tile, lane, sums);
  }
}

// Computes the cotangents of operands, and adds nothing to texels, for the samples of a tile.
template <class C = Coords> DEVICE void pull_tile(const Arrays& arrays, int tile, const Lane& lane, Sums& sums) {
#pragma unroll
  for (int s = 0; s < steps; s++) {
    const Position at = position_of<Tiles>(tile, lane.number, s);
    const C coords = coords_of(arrays, at);
    const Value value = value_if_added(value_of(arrays, at, lane.part), coords);
    pull_sample(arrays, at, coords, value, lane, sums);
  }
}

// The copy of the totals that a block adds to.
template <class T> DEVICE T copy_of(const T& totals) {
  if constexpr (copies > 1) return totals + (int64)(blockIdx.x % copies) * size_of_copy;
  else return totals;
}

// Whether the gather kernel has added an image, so that no window adds its samples.
DEVICE bool has_been_gathered(const Arrays& arrays, int image) {
  return arrays.views[image * numbers_of_view + numbers_of_view - 1] != 0;
}

DEVICE void run(const Arrays& arrays) {
  __shared__ __align__(16) float windows[warps][at_least_four(window_cells * row)];
  float* const window = windows[threadIdx.x / lanes];
  const Lane lane = lane_of(threadIdx.x);
  if constexpr (looks_first) {
    bool remain = false;
    for (int k = 0; k < images; k++) remain = remain || !has_been_gathered(arrays, k);
    if (!remain) return;
  }
  if constexpr (adds_rest)
    if (!adds_integers(arrays.marks)) return;
  const Totals totals = copy_of(arrays.totals);
  uint32 rest = 0, turn = 0;
  // From the last tile on: of the totals, which were just filled with zeros, the last ones are still in a cache.
  const int block = num_blocks - 1 - blockIdx.x;
  for (int tile = block * warps + threadIdx.x / lanes; tile < tiles; tile += num_blocks * warps) {
    if (images > 0 && has_been_gathered(arrays, position_of<Tiles>(tile, 0, 0).outer)) continue;
    if constexpr (adds_rest) {
      if (turn % lanes == 0) rest = tiles_of_rest(arrays, tile, lane.lane);
      if (!(rest >> turn++ % lanes & 1)) continue;
    }
    // If `sets_zero`, each tile has all samples of a texture.
    float* const own_texture = totals + (int64)tile * texture_size;
    if constexpr (sets_zero && !writes_whole) set_to_zero(own_texture, lane.lane);
    Sums sums = {};
    if constexpr (num_walks > 0) add_walks<0>(arrays, totals, window, own_texture, tile, lane, sums);
    else pull_tile(arrays, tile, lane, sums);
    if constexpr (adds_cotangents && steps_along_sum)
      add_shared(arrays, position_of<Tiles>(tile, lane.number, 0), lane, sums);
    for (int k = 0; k < num_sums; k++) {
      for (int bits = 1; bits < lanes; bits *= 2) sums[k] += of_lane_xor(sums[k], bits);
      if (lane.lane == 0) arrays.tile_sums[tile * num_sums + k] = sums[k];
    }
    if constexpr (images == 0 && !adds_rest) break;
  }
}
