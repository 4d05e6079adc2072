// The adjoint of a read: each sample adds its value, times the weight of each tap, to the texel of the tap.
//
// The number of additions to memory bounds its speed. So a warp takes a tile of the samples and adds them up in a window
// of shared memory of its own, without atomic additions: lanes that meet at a texel take turns. Then it adds each texel
// of the window to memory once. The window lies over indices before any address rule; the rules act when it is written.
// Where it would not fit, as with random coordinates, each sample goes to memory by itself.

// The coordinates of a sample; the first one is the number of its texture, if there are several.
struct Coords { @coordinate_fields@ };
// The first tap on each axis of the window, and the weights of all taps.
struct Taps { int first[@axes@]; float weight[@most_taps@]; };
struct Texel { int number; bool inside; };
// The derivatives of a sample along its coordinates, times its cotangent; and the cotangents of its operands.
struct Slopes { float along[@slopes_or_one@]; };
struct Cotangents { float of[@cotangents_or_one@]; };
// Channels that are added to memory at once.
typedef Row<float, @piece@> Piece;

DEVICE Coords coords_of(@operands@, int outer, int z, int y, int x) {
  @coords_statements@
  return {@coords@};
}

@taps_functions@

// The texel at indices before any address rule.
DEVICE Texel texel_of(const int (&at)[@axes@]) {
  @texel_statements@
  return {@texel@};
}

// Whether a sample is added.
DEVICE bool is_added(const Coords& at) {
  @holds_statements@
  return @holds@;
}

DEVICE Value product(const Value& value, float weight) {
  Value found;
  for (int k = 0; k < @width@; k++) found.v[k] = value.v[k] * weight;
  return found;
}

// Adds a piece to a texel in memory: as it is, or in parts whose sums do not depend on their order.
DEVICE void add_to_texel(float* to, const Piece& piece, const float* units) {
  @split_statements@
  @additions@
}

// A lane's part of the derivatives along coordinates, without the first `skipped` channels.
DEVICE Slopes slopes_of(const Coords& at, const Value& value, int base, int first, int skipped, @texels@) {
  @slopes_statements@
  return {{@slopes@}};
}

// The cotangents of a sample's operands.
DEVICE Cotangents cotangents_of(@operands@, int outer, int z, int y, int x, const Slopes& slopes) {
  @cotangents_statements@
  return {{@cotangents@}};
}

// A value without the channels that belong to the part before.
DEVICE Value value_of(const float* values, const Offsets& offsets, int part) {
  Value value = load_value(values, offsets, part);
  for (int k = 0; k < @overlap@; k++) if (k < overlap_of(part)) value.v[k] = 0;
  return value;
}

// A sample's value; zero if it is not added.
DEVICE Value value_if_added(const Value& value, const Coords& at) {
  if (!@skips@ || is_added(at)) return value;
  return Value{};
}

// Finds the cotangents of a sample's operands, summed over the lanes that share its channels: those that differ from
// sample to sample are stored, and the others added to the sums of the tile.
DEVICE void pull_sample(const Position& at, const Coords& coords, const Value& value, int part, bool takes_part, int lane,
                        float* const (&to)[@stored_or_one@], float (&sums)[@sums_or_one@], @texels@, @operands@) {
  const Offsets offsets = offsets_of(at.outer, at.z, at.y, at.x);
  Slopes slopes = slopes_of(coords, value, offsets.texels, first_channel(part), overlap_of(part), texels);
  for (int k = 0; k < @slopes_or_one@; k++) {
    if (!takes_part) slopes.along[k] = 0;
    for (int bits = 1; bits < @lanes_per_sample@; bits *= 2) slopes.along[k] += of_lane_xor(slopes.along[k], bits);
  }
  if (at.exists && lane % @lanes_per_sample@ == 0) {
    const Cotangents found = cotangents_of(@operand_names@, at.outer, at.z, at.y, at.x, slopes);
    @store_cotangents@
  }
}

// Adds what lanes have for the taps of a cell to the window; not every lane has something.
template <int TAPS, class Get>
DEVICE void add_in_turns(float* window, bool has, int cell, int part, int lane, const int (&steps)[TAPS], Get values) {
  const uint32 alike = lanes_with_same(has ? cell * @parts@ + part : -1 - lane);
  const int turn = has ? num_ones(alike & ((1u << lane) - 1)) : -1;
  for (int t = 0; any_lane(turn >= t); t++)
#pragma unroll
    for (int n = 0; n < TAPS; n++) {
      if (turn == t) add_to_shared(window + ((cell + steps[n]) * @parts@ + part) * @width@, values(n));
      wait_for_lanes();
    }
}

// Sets the texture of a warp to zero.
DEVICE void set_to_zero(float* texture, int lane) {
  if constexpr (@texture_size@ % 4 == 0)
    for (int k = lane * 4; k < @texture_size@; k += 128) store_four(texture + k, 0);
  else
    for (int k = lane; k < @texture_size@; k += 32) texture[k] = 0;
  wait_for_lanes();
}

extern "C" __global__ void __launch_bounds__(@threads@, @blocks@) @name@(@parameters@) {
  @edged@
  __shared__ __align__(16) float windows[@warps@][@shared@];
  float* const window = windows[threadIdx.x / 32];
  const int lane = threadIdx.x % 32;
  const bool takes_part = lane % @lanes_per_sample@ < @parts@;
  const int part = takes_part ? lane % @lanes_per_sample@ : 0, number = lane / @lanes_per_sample@;
  if constexpr (@few_images@) {
    bool remain = false;
    for (int k = 0; k < @images@; k++) remain = remain || @views@[k * @numbers@ + @numbers@ - 1] == 0;
    if (!remain) return;
  }
  float* const cotangents_to[@stored_or_one@] = {@cotangents_to@};
  @choose_copy@
  for (int tile = blockIdx.x * @warps@ + threadIdx.x / 32; tile < @tiles@; tile += @all_warps@) {
    // An image whose texels have looked for their samples.
    if (@remaining@ && @views@[position_of<Tiles>(tile, 0, 0).outer * @numbers@ + @numbers@ - 1] != 0) continue;
    // A texture of which no other warp has samples.
    float* const own_texture = @totals@ + (int64)tile * @texture_size@;
    if constexpr (@sets_zero@ && !@writes_whole@) set_to_zero(own_texture, lane);
    float sums[@sums_or_one@] = {};
    @passes@
    if constexpr (@sums@ > 0)
      for (int k = 0; k < @sums@; k++) {
        for (int bits = 1; bits < 32; bits *= 2) sums[k] += of_lane_xor(sums[k], bits);
        if (lane == 0) @sums_to@[tile * @sums@ + k] = sums[k];
      }
    if constexpr (!@remaining@) break;
  }
}
