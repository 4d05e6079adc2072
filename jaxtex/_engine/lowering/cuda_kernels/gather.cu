// The adjoint of a read at an affine grid as a gather, without atomic additions: each thread owns a block of texels, and
// looks for the samples whose taps fall on them. Those lie in a parallelogram of each image.

// How an image of samples lies on a texture: see `views`.
struct View { float base[@dims@], slope[@dims@][@dims@], inverse[@dims@][@dims@], margin, taken; };
// On each axis: the texels of a sample's taps, and their weights.
struct AxisTaps { int texel[@dims@][@taps@]; float weight[@dims@][@taps@]; };

DEVICE AxisTaps taps_at(@operands@, int outer, int z, int y, int x) {
  @axis_taps_statements@
  return {@axis_taps@};
}

constexpr int dims = @dims@, own[dims] = {@own@};

// Calls a function with the number of each texel that a thread owns, and the product of its weights along all axes.
template <class Function> DEVICE void for_each_owned(Function function, const float (&weight)[dims][@most_own@]) {
#pragma unroll
  for (int n = 0; n < @owned@; n++) {
    float all = 1;
    for (int k = dims - 1, rest = n; k >= 0; rest /= own[k--]) all *= weight[k][rest % own[k]];
    function(n, all);
  }
}

extern "C" __global__ void __launch_bounds__(@threads@) @name@(@parameters@) {
  constexpr int sizes[dims] = {@sizes@}, extent[3] = {@extent@};
  constexpr int first_tap[dims] = {@first_taps@};
  const int part = threadIdx.x % @parts@;
  const Position block = position_of(blockIdx.x, threadIdx.x / @parts@, 0);
  if (!block.exists) return;
  const int place[3] = {block.z, block.y, block.x};
  int texel[dims];
  for (int k = 0; k < dims; k++) texel[k] = place[3 - dims + k];
  Value sums[@owned@];
#pragma unroll
  for (int n = 0; n < @owned@; n++)
    for (int k = 0; k < @width@; k++) sums[n].v[k] = 0;
  for (int image = 0; image < @images@; image++) {
    const int outer = block.outer * @images@ + image;
    const View view = bits_as<View>(load_row<@numbers@>(views + outer * @numbers@));
    if (view.taken == 0) continue;
    // Where positions lie whose taps fall on the block: around `center`, no farther than `reach`.
    float center[dims], reach[dims];
    bool meets = true;
    for (int k = 0; k < dims; k++) {
      const float low = texel[k] - first_tap[k] - @taps@ + 1, high = texel[k] + own[k] - first_tap[k];
      center[k] = (low + high) * 0.5f - view.base[k], reach[k] = (high - low) * 0.5f + view.margin;
      float moves = 0;
      for (int n = 0; n < dims; n++) moves += fabs(view.slope[k][n]) * extent[n];
      meets = meets && !(fabs(center[k]) > reach[k] + moves);
    }
    if (!meets) continue;
    // The box of their preimage: x, y, z.
    int from[3] = {0, 0, 0}, to[3] = {0, 0, 0};
    for (int n = 0; n < dims; n++) {
      float middle = 0, half = @slack@f;
      for (int k = 0; k < dims; k++) middle += view.inverse[n][k] * center[k], half += fabs(view.inverse[n][k]) * reach[k];
      // What is not a number bounds nothing.
      if (middle - half > 0) from[n] = middle - half < extent[n] ? (int)ceil(middle - half) : extent[n];
      to[n] = middle + half < 0 ? -1 : middle + half < extent[n] - 1 ? (int)floor(middle + half) : extent[n] - 1;
    }
    // How far a row goes while a position moves by one, and from the middle of the row to its ends.
    float along_row[dims], half_row[dims];
    for (int k = 0; k < dims; k++) {
      const bool moves = fabs(view.slope[k][0]) > 1e-4f;
      along_row[k] = moves ? 1 / view.slope[k][0] : 0;
      half_row[k] = moves ? reach[k] * fabs(along_row[k]) + @slack@f : INFINITE;
    }
    for (int z = from[2]; z <= to[2]; z++)
      for (int y = from[1]; y <= to[1]; y++) {
        // In this row, where the parallelogram is.
        float start = from[0], end = to[0];
        for (int k = 0; k < dims; k++) {
          float rest = center[k] - view.slope[k][1] * y;
          if (dims == 3) rest -= view.slope[k][dims - 1] * z;
          const float middle = rest * along_row[k], half = half_row[k];
          if (middle - half > start) start = ceil(middle - half);
          if (middle + half < end) end = floor(middle + half);
        }
        if (start > end) continue;
        for (int x = (int)start; x <= (int)end; x++) {
          const AxisTaps taps = taps_at(@operand_names@, outer, z, y, x);
          const Value value = load_value(values, offsets_of(outer, z, y, x), part);
          float weight[dims][@most_own@];
#pragma unroll
          for (int k = 0; k < dims; k++)
#pragma unroll
            for (int j = 0; j < own[k]; j++) {
              weight[k][j] = taps.texel[k][0] == texel[k] + j ? taps.weight[k][0] : 0;
              for (int n = 1; n < @taps@; n++) weight[k][j] += taps.texel[k][n] == texel[k] + j ? taps.weight[k][n] : 0;
            }
          float some = 0;
          for (int k = 0; k < @width@; k++) some += value.v[k] * 0;
          if (some == 0) {
            for_each_owned([&](int n, float all) {
              for (int k = 0; k < @width@; k++) sums[n].v[k] += value.v[k] * all;
            }, weight);
          } else {  // a value that is not finite goes only where it has a weight
            for_each_owned([&](int n, float all) {
              if (all != 0)
                for (int k = 0; k < @width@; k++) sums[n].v[k] += value.v[k] * all;
            }, weight);
          }
        }
      }
  }
#pragma unroll
  for (int n = 0; n < @owned@; n++) {
    int number = block.outer, inside = true, at[dims];
    for (int k = dims - 1, rest = n; k >= 0; rest /= own[k--]) at[k] = texel[k] + rest % own[k];
    for (int k = 0; k < dims; k++) number = number * sizes[k] + at[k], inside = inside && at[k] < sizes[k];
    if (inside) @store@(totals + (int64)number * @channels@ + first_channel(part), sums[n]);
  }
}
