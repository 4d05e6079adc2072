// The adjoint of a read at an affine grid as a gather, without atomic additions: each thread owns a block of texels, and
// looks for the samples whose taps read them. In each image, these samples fill a parallelogram.
//
// `gather_source.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "samples/position.cuh"
#include "samples/samples.cuh"
#include "gather/config.cuh"

// The placement of an image of samples on a texture: see `view` in `gather_source.py`.
struct View {
  float offset[dims], bound[dims], inverse[dims - 1][dims], half[dims - 1];
  float along[dims], step[dims - 1][dims], half_row[dims];
  float operands[operands_of_view], taken;
};
// On each axis, the position of a sample if the filter is a tent, otherwise its first tap and the weights of its taps.
struct AxisTaps { float position[dims]; int first[dims]; float weight[dims][num_taps]; };
#include "gather/traced.cuh"

// The texels of a thread: the first one, its center, and the number of their texture.
struct Block { int texel[dims]; float center[dims]; int texture; };

// The weights of a sample for a thread's texels along axis `k`.
DEVICE void find_weights(float (&weight)[most_own], const AxisTaps& taps, const Block& block, int k) {
#pragma unroll
  for (int j = 0; j < own(k); j++) {
    if (is_tent(k)) {
      weight[j] = saturated(1 - fabs(taps.position[k] - block.center[k] - j));
    } else {
      weight[j] = 0;
      for (int n = 0; n < num_taps; n++)
        if (wrapped_sub(taps.first[k], block.texel[k]) == j - n) weight[j] = taps.weight[k][n];
    }
  }
}

// Adds up the samples that read a thread's texels. A careful search does not multiply values by weights of zero, so
// infinities and NaN reach only texels for which they have a weight.
template <bool careful>
DEVICE void search(Value (&sums)[owned], const Arrays& arrays, const Block& block, int part, int first_row) {
#pragma unroll
  for (int n = 0; n < owned; n++)
    for (int k = 0; k < Channels::width; k++) sums[n].v[k] = 0;
  for (int image = 0; image < images; image++) {
    const int outer = block.texture * images + image;
    const View view = bits_as<View>(load_aligned_row<numbers>(arrays.views + outer * numbers));
    // Positions whose taps read the block lie around `center`.
    float center[dims];
    bool meets = view.taken != 0;
    for (int k = 0; k < dims; k++) {
      center[k] = block.center[k] + view.offset[k];
      meets = meets && !(fabs(center[k]) > view.bound[k]);
    }
    if (!meets) continue;
    // The rows (and slices) whose samples can have such positions. NaN sets no bound.
    int from[2] = {0, 0}, to[2] = {0, 0};
    for (int n = 0; n < dims - 1; n++) {
      float middle = 0;
      for (int k = 0; k < dims; k++) middle += view.inverse[n][k] * center[k];
      from[n] = converted<int, float>(ceil(fmaxf(middle - view.half[n], 0)));
      to[n] = converted<int, float>(floor(fminf(middle + view.half[n], extent(n + 1) - 1)));
    }
    // The range of the parallelogram along x in the row y = z = 0.
    float low[dims], high[dims];
    for (int k = 0; k < dims; k++) {
      low[k] = center[k] * view.along[k] - view.half_row[k];
      high[k] = center[k] * view.along[k] + view.half_row[k];
    }
    for (int z = from[1]; z <= to[1]; z++)
      for (int y = from[0]; y <= to[0]; y++) {
        const int row[2] = {y, z};
        float start = 0, end = extent(0) - 1, pixel[dims];
        for (int k = 0; k < dims; k++) {
          float low_here = low[k], high_here = high[k];
          for (int n = 0; n < dims - 1; n++) low_here -= view.step[n][k] * row[n], high_here -= view.step[n][k] * row[n];
          start = fmaxf(start, low_here), end = fminf(end, high_here);
        }
        start = ceil(start);
        for (int n = 0; n < dims - 1; n++) pixel[n + 1] = view.operands[n + 1] + row[n];
        Offsets offsets = offsets_of(Position{outer, z, y, converted<int, float>(start), true});
#pragma unroll 1
        for (float x = start; x <= end; x++, offsets.value += value_step) {
          pixel[0] = view.operands[0] + x;
          if (!is_added(view, pixel, first_row)) continue;
          const Value value = load_value<Channels, ValueSlice>(arrays.values, offsets.value, part);
          const AxisTaps taps = taps_at(view, pixel);
          float weight[dims][most_own];
#pragma unroll
          for (int k = 0; k < dims; k++) find_weights(weight[k], taps, block, k);
#pragma unroll
          for (int n = 0; n < owned; n++) {
            // With one channel, the value is the first factor, so that adjacent texels share products.
            float all = Channels::width == 1 ? value.v[0] : 1;
            bool falls = true;
            for (int k = dims - 1, rest = n; k >= 0; rest /= own(k--)) {
              all *= weight[k][rest % own(k)];
              falls = falls && weight[k][rest % own(k)] != 0;
            }
            if (!careful || falls)
              for (int k = 0; k < Channels::width; k++) sums[n].v[k] += Channels::width == 1 ? all : value.v[k] * all;
          }
        }
      }
  }
}

DEVICE void run(const Arrays& arrays) {
  const int first_row = finds_rows ? arrays.first_row[0] : 0;
  const int part = threadIdx.x % Channels::parts;
  const Position first = position_of<Tiles>(blockIdx.x, threadIdx.x / Channels::parts, 0);
  if (!first.exists) return;
  const int place[3] = {first.z, first.y, first.x};
  Block block;
  for (int k = 0; k < dims; k++) {
    block.texel[k] = place[3 - dims + k] + (k == 0 ? first_row : 0);
    block.center[k] = block.texel[k] + origin(k);
  }
  block.texture = first.outer;
  Value sums[owned];
  search<false>(sums, arrays, block, part, first_row);
  // A weight of zero times an infinity or NaN makes a sum NaN. If a sum is not finite, search again, carefully.
  float some = 0;
#pragma unroll
  for (int n = 0; n < owned; n++)
    for (int k = 0; k < Channels::width; k++) some += sums[n].v[k] * 0;
  if (some != 0) search<true>(sums, arrays, block, part, first_row);
#pragma unroll
  for (int n = 0; n < owned; n++) {
    int number = block.texture, inside = true, at[dims];
    for (int k = dims - 1, rest = n; k >= 0; rest /= own(k--)) at[k] = block.texel[k] + rest % own(k);
    for (int k = 0; k < dims; k++) {
      const int place = at[k] - (k == 0 ? first_row : 0);
      number = number * count(k) + place, inside = inside && place < count(k);
    }
    // No tap reads texels beyond the texture.
    if (at[0] >= size(0))
      for (int k = 0; k < Channels::width; k++) sums[n].v[k] = 0;
    if (inside) {
      float* const to = arrays.totals + (int64)number * Channels::count + first_channel<Channels>(part);
      if constexpr (Channels::aligned) store_aligned_row(to, sums[n]);
      else store_row(to, sums[n]);
    }
  }
}
