#pragma once
#include "trace/warp.cuh"
#include "scatter/exact_sums.cuh"
#include "scatter/stored.cuh"
#include "scatter/traced.cuh"

typedef StoredWindow<Channels, window_cells, lanes> Layout;

// The work of a lane: its part of the channels, and the number of its sample in a step. If a sample has more lanes than
// there are parts of channels, its last lanes take no part.
struct Lane { int lane, number, part; bool takes_part; };

DEVICE Lane lane_of(uint32 thread) {
  const int lane = thread % lanes, part = lane % lanes_per_sample;
  const bool takes_part = part < Channels::parts;
  return {lane, lane / lanes_per_sample, takes_part ? part : 0, takes_part};
}

// A value, with zeros in the channels that belong to the part before.
DEVICE Value value_of(const Arrays& arrays, Position at, int part) {
  Value value = load_value<Channels, ValueSlice>(arrays.values, offsets_of(at).value, part);
  for (int k = 0; k < overlap_of<Channels>(Channels::parts - 1); k++)
    if (k < overlap_of<Channels>(part)) value.v[k] = 0;
  return value;
}

// A sample's value; zero if it is not added.
DEVICE Value value_if_added(const Value& value, const Coords& coords) {
  if (is_added(coords)) return value;
  return Value{};
}

// The functions of cotangents are templates: a kernel without cotangents lacks the traced functions that they call.

// Adds to memory the cotangents that the reads of a sum share. A lane's samples are such reads. First, lanes with reads of
// the same sum add theirs up.
template <class F = Cotangents> DEVICE void add_shared(const Arrays& arrays, Position at, const Lane& lane, Sums& sums) {
  constexpr int alike = lanes_per_sample * lanes_of_sum;
  F found;
  for (int k = 0; k < num_cotangents; k++) {
    found.of[k] = sums[num_sums + k], sums[num_sums + k] = 0;
    for (int bits = lanes_per_sample; bits < alike; bits *= 2) found.of[k] += of_lane_xor(found.of[k], bits);
  }
  if (at.exists && lane.lane % alike == 0) add_cotangents(arrays, offsets_of(at).sample, found);
}

// Computes the cotangents of a sample's operands, summed over the lanes that share its channels. Cotangents that differ
// from sample to sample are stored; the others are added to the sums of the tile.
template <class C>
DEVICE void pull_sample(const Arrays& arrays, Position at, const C& coords, const Value& value, const Lane& lane, Sums& sums) {
  const Offsets offsets = offsets_of(at);
  const int skipped = overlap_of<Channels>(lane.part);
  auto slopes = slopes_of(arrays, coords, value, offsets.texels, first_channel<Channels>(lane.part), skipped);
  for (int k = 0; k < num_slopes; k++) {
    if (!lane.takes_part) slopes.along[k] = 0;
    for (int bits = 1; bits < lanes_per_sample; bits *= 2) slopes.along[k] += of_lane_xor(slopes.along[k], bits);
  }
  if (!adds_cotangents && at.exists && lane.lane % lanes_per_sample == 0)
    keep_cotangents(arrays, offsets.sample, cotangents_of(arrays, at, slopes), sums);
  if constexpr (adds_cotangents) {
    const auto found = cotangents_of(arrays, at, slopes);
    if (at.exists && lane.lane % lanes_per_sample == 0) keep_cotangents(arrays, offsets.sample, found, sums);
    for (int k = 0; k < num_cotangents; k++) sums[num_sums + k] += at.exists ? found.of[k] : 0;
    if constexpr (!steps_along_sum) add_shared(arrays, at, lane, sums);
  }
}

// The window of a tile: its first index, its size and its stride on each axis.
struct Window { int low[axes], size[axes], stride[axes]; };

template <class W> DEVICE float weight_of(const Taps<W::factors>& taps, int tap) {
  float weight = taps.factor[W::factor(tap, 0)];
#pragma unroll
  for (int k = 1; k < W::steps; k++) weight *= taps.factor[W::factor(tap, k)];
  return weight;
}

DEVICE Value product(const Value& value, float weight) {
  Value found;
  for (int k = 0; k < Channels::width; k++) found.v[k] = value.v[k] * weight;
  return found;
}

// Adds a piece to a texel in memory. If sums are deterministic, a piece is one number, and is added as an integer.
DEVICE void add_to_texel(const Arrays& arrays, float* to, const Piece& piece) {
  if constexpr (!deterministic) add_to_memory(to, piece);
  else if (is_finite(piece.v[0])) add_atomically((uint64*)to, in_units(piece.v[0], arrays.unit[0]));
  else set_atomically((uint64*)to, met_with(piece.v[0]));
}

// Adds values to the window, in lanes with `has`: one for each of the `steps` from a cell to the cells of the taps. Lanes
// with the same cell take turns.
template <int count, class Get>
DEVICE void add_in_turns(float* window, bool has, int cell, const Lane& lane, const int (&steps)[count], Get values) {
  const uint32 alike = lanes_with_same(has ? cell * Channels::parts + lane.part : -1 - lane.lane);
  const int turn = has ? num_ones(alike & ((1u << lane.lane) - 1)) : -1;
  for (int t = 0; any_lane(turn >= t); t++)
#pragma unroll
    for (int n = 0; n < count; n++) {
      if (turn == t)
        add_to_shared(window + ((cell + steps[n]) * Channels::parts + lane.part) * Channels::width, values(n));
      wait_for_lanes();
    }
}

// The share of a lane in each sample of many taps: some channels of one tap. `offset` is the distance of the tap from
// the first one. The weight of the tap is the product of the factors whose numbers are in `factor`.
template <class W> struct Share { bool exists; int part, offset[axes], factor[W::steps]; };

// How many shares a lane has.
template <class W> constexpr int shares = ceil_div(W::taps * Channels::parts, lanes);

// A share in memory: adjacent lanes take adjacent taps.
template <class W> DEVICE Share<W> share_of(int lane, int k) {
  constexpr int all = W::taps * Channels::parts;
  Share<W> share = {};
  share.exists = (k + 1) * lanes <= all || lane + k * lanes < all;
  share.part = (lanes % Channels::parts == 0 ? lane : lane + k * lanes) % Channels::parts;
  int after = Channels::parts, end = W::factors;
#pragma unroll
  for (int n = W::steps - 1; n >= 0; n--) {
    const int count = W::count(n), number = lanes % (after * count) == 0 ? lane : lane + k * lanes;
    const int place = share.exists ? number / after % count : 0;
    after *= count, end -= count;
    share.offset[W::axis(n)] += place, share.factor[n] = end + place;
  }
  return share;
}

// How many boxes of taps the lanes take, one after the other.
template <class W> DEVICE constexpr int num_boxes() {
  int all = 1;
  if constexpr (W::many)
    for (int n = 0; n < W::steps; n++) all *= ceil_div(W::count(n), W::along(n));
  return all;
}
template <class W> constexpr int boxes = num_boxes<W>();

// A share in a window: the lanes take a box of taps. Shares have factors in common, and lanes meet in no bank.
template <class W> DEVICE Share<W> share_of_box(int lane, int k) {
  Share<W> share = {};
  share.part = lane % Channels::parts;
  uint32 rest = lane / Channels::parts, box = k;
  bool exists = true;
  int end = W::factors;
#pragma unroll
  for (int n = W::steps - 1; n >= 0; n--) {
    const uint32 along = W::along(n), count = W::count(n), boxes = ceil_div(count, along);
    uint32 place = rest % along + box % boxes * along;
    rest /= along, box /= boxes, end -= count;
    if (count % along > 0 && place >= count) exists = false, place = 0;
    share.offset[W::axis(n)] += place, share.factor[n] = end + place;
  }
  share.exists = exists && rest == 0;
  return share;
}

// The samples of a warp, in shared memory. Numbers of one kind lie side by side.
template <class W> struct alignas(16) Shown {
  static constexpr int samples = lanes / lanes_per_sample, pitch = samples < 8 ? 4 : samples + 4;
  float factor[W::factors][pitch], value[row][pitch], first[axes][pitch];  // the last as bits of integers
};

template <class W> DEVICE Shown<W>& shown_samples() {
  __shared__ Shown<W> all[warps];
  return all[threadIdx.x / lanes];
}

// Adds samples of many taps one after the other. Of each, every lane adds its own shares, by `add`. The taps of a
// lane's own sample begin at `first`.
template <class W, int count, class Add>
DEVICE void add_by_taps(const int (&first)[axes], const Taps<W::factors>& taps, const Value& value, const Lane& lane,
                        const Share<W> (&own)[count], Add add) {
  constexpr int samples = Shown<W>::samples, width = Channels::width, numbers = count * width;
  constexpr int at_once = samples < 4 || numbers > 12 ? 1 : numbers > 4 ? 2 : 4;
  Shown<W>& shown = shown_samples<W>();
  if (lane.takes_part) {
    if (lane.part == 0) {
      for (int k = 0; k < W::factors; k++) shown.factor[k][lane.number] = taps.factor[k];
      for (int k = 0; k < axes; k++) shown.first[k][lane.number] = bits_as<float>(first[k]);
    }
    for (int k = 0; k < width; k++) shown.value[lane.part * width + k][lane.number] = value.v[k];
  }
  wait_for_lanes();
#pragma unroll 1
  for (int s = 0; s < samples; s += at_once) {
    typedef Row<float, at_once> Numbers;
    Numbers firsts[axes], terms[count][width];
    for (int k = 0; k < axes; k++) firsts[k] = load_shared<at_once>(shown.first[k] + s);
#pragma unroll
    for (int m = 0; m < count; m++) {
      Numbers weights[W::steps];
      for (int n = 0; n < W::steps; n++) weights[n] = load_shared<at_once>(shown.factor[own[m].factor[n]] + s);
      for (int k = 0; k < width; k++) {
        terms[m][k] = load_shared<at_once>(shown.value[own[m].part * width + k] + s);
        for (int n = 0; n < W::steps; n++)
          for (int j = 0; j < at_once; j++) terms[m][k].v[j] *= weights[n].v[j];
      }
    }
#pragma unroll
    for (int j = 0; j < at_once; j++) {
      int at[axes];
      Value of[count];
      for (int k = 0; k < axes; k++) at[k] = bits_as<int>(firsts[k].v[j]);
      for (int m = 0; m < count; m++)
        for (int k = 0; k < width; k++) of[m].v[k] = terms[m][k].v[j];
      add(at, of);
      wait_for_lanes();
    }
  }
}

DEVICE void set_window_to_zero(float* window, int cells, int lane) {
  for (int k = lane * 4; k < cells * row; k += lanes * 4) store_four(window + k, 0);
  wait_for_lanes();
}

// Sets the texture of a warp to zero.
DEVICE void set_to_zero(float* texture, int lane) {
  if constexpr (texture_size % 4 == 0)
    for (int k = lane * 4; k < texture_size; k += lanes * 4) store_four(texture + k, 0);
  else
    for (int k = lane; k < texture_size; k += lanes) texture[k] = 0;
  wait_for_lanes();
}

// Writes the whole texture of a warp: the sums in the window, and zeros elsewhere.
DEVICE void write_whole(float* texture, const float* window, const Window& at, int lane) {
  constexpr int numbers = texture_size % 4 == 0 ? 4 : 1, slice = texture_size / size_of(first_axis);
  for (int k = lane * numbers; k < texture_size; k += lanes * numbers) {
    Row<float, numbers> found;
    for (int m = 0; m < numbers; m++) found.v[m] = 0;
    const uint32 low_slice = at.low[first_axis], slices = at.size[first_axis];
    const uint32 from = k / slice - low_slice, to = (k + numbers - 1) / slice - low_slice;
    if (slice < numbers || from < slices || to < slices)
      for (int m = 0; m < numbers; m++) {
        int rest = (k + m) / Channels::count, cell = 0;
        bool holds = true;
        for (int n = axes - 1; n >= first_axis; n--) {
          const uint32 index = (uint32)(rest % size_of(n)) - (uint32)at.low[n];
          holds = holds && index < (uint32)at.size[n];
          cell += index * at.stride[n];
          rest /= size_of(n);
        }
        if (holds) found.v[m] = window[cell * row + (k + m) % Channels::count];
      }
    store_aligned_row(texture + k, found);
  }
}

// Whether all indices of a window are those of texels.
DEVICE bool holds_texels(const Window& of) {
  bool inside = true;
  for (int k = first_axis; k < axes; k++) inside = inside && of.low[k] >= 0 && of.size[k] <= size_of(k) - of.low[k];
  return inside;
}

DEVICE Box box_of(const Window& of) {
  constexpr int y = axes - 2, x = axes - 1;
  const int first_row = first_axis > 0 ? of.low[0] * Stored::down : 0;
  return {first_row + of.low[y], of.low[x], of.size[y], of.size[x] | of.stride[y] << 16};
}

DEVICE int* marks_of(const Arrays& arrays) { return (int*)arrays.marks; }

// Stores a window, and adds its number to the lists of the squares that it lies on.
DEVICE void store_window(const Arrays& arrays, const float* window, const Box& box, int tile, int lane) {
  if (lane == 0) ((Box*)arrays.boxes)[tile] = box;
  with_squares(box, lane, lanes, [&](int square) {
    const int place = count_atomically(marks_of(arrays) + 2 * square);
    if (place < Stored::most_windows) arrays.lists[square * Stored::most_windows + place] = tile;
    else marks_of(arrays)[full_mark] = 1;
  });
  float* const to = arrays.windows + (int64)tile * Layout::size;
  const int cells = box.rows * stride_of(box);
  if constexpr (!Layout::packs) {
    for (int k = lane * 4; k < cells * row; k += lanes * 4) *(Four*)(to + k) = *(const Four*)(window + k);
    return;
  }
  int first = 0;
  for (int k = 0; k < cells; k += lanes) {
    Row<float, row> cell = {};
    if (k + lane < cells) cell = load_shared<row>(window + (k + lane) * row);
    const uint32 kept = lanes_that(!is_zero(cell));
    float* const place = to + Layout::first_cell + (first + num_ones(kept & ((1u << lane) - 1))) * row;
    if (kept >> lane & 1) store_aligned_row(place, cell);
    if (lane == 0) ((Group*)to)[k / lanes] = {kept, first};
    first += num_ones(kept);
  }
}

// Whether the samples of a tile are added as integers.
DEVICE bool is_rest(const Arrays& arrays, int tile) {
  return arrays.marks[all_mark] || ((const Box*)arrays.boxes)[tile].rows < 0;
}

// Whether a window is crowded: along an axis it is no longer than the taps of one sample, as beyond the border of a clamped
// texture. So many of these may lie on one square that integers are faster.
template <class W> DEVICE bool is_crowded(const Window& of, float cells) {
  bool crowded = false;
  for (int k = first_axis; k < axes; k++) crowded = crowded || of.size[k] <= W::span(k) + 1;
  return crowded && cells <= crowd_cells;
}

DEVICE void mark_square(const Arrays& arrays, int square) {
  if (!arrays.marks[2 * square + 1]) marks_of(arrays)[2 * square + 1] = 1;
}

DEVICE void note_rest(const Arrays& arrays, int tile, const Box& box) {
  ((Box*)arrays.boxes)[tile] = box;
  if (!arrays.marks[rest_mark]) marks_of(arrays)[rest_mark] = 1;
}

// Stores a crowded window, whose cells are indices, and marks the squares of its texels.
DEVICE void store_crowd(const Arrays& arrays, const float* window, const Window& of, int cells, int tile, int lane) {
  constexpr int y = axes - 2, x = axes - 1;
  float* const to = (float*)arrays.crowds + (int64)tile * crowd_cells * row;
  for (int k = lane * 4; k < cells * row; k += lanes * 4) *(Four*)(to + k) = *(const Four*)(window + k);
  bool adds = false;
  for (int k = lane; k < of.size[y] * of.size[x]; k += lanes) {
    int index[axes];
    for (int n = 0; n < axes; n++) index[n] = of.low[n];
    index[y] += k / of.size[x], index[x] += k % of.size[x];
    const Texel texel = texel_of(index);
    if (texel.inside) adds = true, mark_square(arrays, square_of(place_of(texel.number)));
  }
  adds = any_lane(adds);
  if (lane == 0 && !adds) ((Box*)arrays.boxes)[tile] = {};
  if (lane == 0 && adds) note_rest(arrays, tile, {of.low[y], of.low[x], ~of.size[y], of.size[x] | of.stride[y] << 16});
}

// Whether a stored window lies on a square that has more windows than its list has room for.
DEVICE bool meets_full(const Arrays& arrays, int tile) {
  bool meets = false;
  if (arrays.marks[full_mark])
    with_squares(((const Box*)arrays.boxes)[tile], 0, 1, [&](int square) { meets = meets || is_full(arrays.marks, square); });
  return meets;
}

// Which of the next tiles of a warp, one for each lane, are to be added as integers, whole or in part.
DEVICE uint32 tiles_of_rest(const Arrays& arrays, int tile, int lane) {
  tile += lane * num_blocks * warps;
  return lanes_that(tile < tiles && (is_rest(arrays, tile) || meets_full(arrays, tile)));
}

// The greatest of `bits` and the bits of the finite magnitudes of a value.
DEVICE int largest_bits(int bits, const Value& value) {
  for (int k = 0; k < Channels::width; k++) {
    const int more = bits_as<int>(value.v[k]) & 0x7fffffff;
    bits = more < 0x7f800000 ? max(bits, more) : bits;
  }
  return bits;
}

// Notes the bits of the largest value of a warp, if they are greater than `known`.
DEVICE void note_largest(const Arrays& arrays, int bits, int known, int lane) {
  bits = greatest_of_lanes(bits);
  if (lane == 0 && bits > known) raise_atomically(marks_of(arrays) + largest_mark, bits);
}

// Adds the texels of a window to memory. Each lane takes pieces of the numbers of a cell, row by row.
DEVICE void add_window(const Arrays& arrays, const Totals& totals, const float* window, const Window& of, int lane,
                       bool adds_all) {
  constexpr int last = axes - 1, before = last > 0 ? last - 1 : 0, pieces = row / piece_width;
  const int width = of.size[last] * pieces;
  int at[axes], i = lane;
  for (int k = 0; k < axes; k++) at[k] = 0;
  for (;;) {
    if constexpr (last > 0) {
      while (i >= width) i -= width, at[before]++;
#pragma unroll
      for (int k = before; k > 0; k--)
        while (at[k] >= of.size[k]) at[k] -= of.size[k], at[k - 1]++;
    }
    if (last > 0 ? at[0] >= of.size[0] : i >= width) break;
    int cell = i / pieces;
    for (int k = 0; k < last; k++) cell += at[k] * of.stride[k];
    const int column = i % pieces * piece_width;
    const Piece piece = load_shared<piece_width>(window + cell * row + column);
    if (!is_zero(piece)) {
      int index[axes];
      for (int k = 0; k < last; k++) index[k] = of.low[k] + at[k];
      index[last] = of.low[last] + i / pieces;
      const Texel texel = texel_of(index);
      const int channel = first_channel<Channels>(column / Channels::width) + column % Channels::width;
      if (texel.inside && (!adds_rest || adds_all || is_full(arrays.marks, square_of(place_of(texel.number)))))
        add_to_texel(arrays, totals + (int64)texel.number * total_width + channel * words, piece);
    }
    i += lanes;
  }
}

// Adds a stored crowded window to memory.
DEVICE void add_crowd(const Arrays& arrays, const Totals& totals, float* window, const Box& box, int texture, int tile, int lane) {
  constexpr int y = axes - 2, x = axes - 1;
  Window of;
  of.low[0] = texture, of.size[0] = 1, of.stride[0] = 0;
  of.low[y] = box.low_y, of.low[x] = box.low_x, of.size[y] = ~box.rows, of.size[x] = columns_of(box);
  of.stride[y] = stride_of(box), of.stride[x] = 1;
  const float* const from = arrays.crowds + (int64)tile * crowd_cells * row;
  for (int k = lane * 4; k < of.size[y] * of.stride[y] * row; k += lanes * 4) *(Four*)(window + k) = *(const Four*)(from + k);
  wait_for_lanes();
  add_window(arrays, totals, window, of, lane, true);
  wait_for_lanes();
}

// Adds channels of a sample to a texel in memory.
DEVICE void add_value(const Arrays& arrays, float* to, const Value& value) {
#pragma unroll
  for (int k = 0; k < Channels::width; k += piece_width) {
    Piece piece;
    for (int m = 0; m < piece_width; m++) piece.v[m] = value.v[k + m];
    add_to_texel(arrays, to + k * words, piece);
  }
}

// Adds a sample to the texels of its taps in memory.
template <class W>
DEVICE void add_sample(const Arrays& arrays, const Totals& totals, const Value& value, const Taps<W::factors>& taps, int part) {
  Texel texels_of_taps[W::taps];
#pragma unroll
  for (int n = 0; n < W::taps; n++) {
    int index[axes];
    for (int k = 0; k < axes; k++) index[k] = taps.first[k] + W::offset(n, k);
    texels_of_taps[n] = texel_of(index);
  }
#pragma unroll
  for (int n = 0; n < W::taps; n++) {
    const Texel texel = texels_of_taps[n];
    const Value part_of_tap = product(value, weight_of<W>(taps, n));
    if constexpr (W::adds_pairs) {
      // Two texels that are adjacent in memory take one addition if the number of the first is even.
      constexpr int width = Channels::width;
      const Texel other = texels_of_taps[n ^ 1];
      if (texel.inside && other.inside && (texel.number ^ other.number) == 1) {
        if (n % 2) continue;
        const Value part_of_other = product(value, weight_of<W>(taps, n ^ 1));
        const bool odd = texel.number % 2;
        Row<float, W::adds_pairs ? 2 * width : 1> pair;
        for (int k = 0; k < width; k++) {
          pair.v[k] = odd ? part_of_other.v[k] : part_of_tap.v[k];
          pair.v[k + width] = odd ? part_of_tap.v[k] : part_of_other.v[k];
        }
        add_to_memory(totals + (int64)min(texel.number, other.number) * total_width, pair);
        continue;
      }
    }
    if (texel.inside)
      add_value(arrays, totals + (int64)texel.number * total_width + first_channel<Channels>(part), part_of_tap);
  }
}

// Adds a lane's share of a sample to the texels of its taps in memory.
template <class W>
DEVICE void add_terms(const Arrays& arrays, const Totals& totals, const int (&first)[axes], const Value (&terms)[shares<W>],
                      const Share<W> (&own)[shares<W>]) {
#pragma unroll
  for (int m = 0; m < shares<W>; m++) {
    int index[axes];
    for (int k = 0; k < axes; k++) index[k] = first[k] + own[m].offset[k];
    const Texel texel = texel_of(index);
    if (own[m].exists && texel.inside)
      add_value(arrays, totals + (int64)texel.number * total_width + first_channel<Channels>(own[m].part) * words,
                terms[m]);
  }
}

// Adds the samples of all lanes that have one to sums of integers. The window is not in use here: lanes store there what
// they add to texels. Then adjacent lanes add numbers that lie side by side in memory.
template <class W>
DEVICE void add_samples_exactly(const Arrays& arrays, const Totals& totals, float* window, const Value& value,
                                const Taps<W::factors>& taps, bool has, const Lane& lane) {
  constexpr int width = Channels::width, needed = lanes * width + lanes * ((int)sizeof(float*) / (int)sizeof(float));
  static_assert(!deterministic || window_cells * row >= needed, "a window has room for what all lanes add");
  float** const texels = (float**)(window + lanes * width);
#pragma unroll
  for (int n = 0; n < W::taps; n++) {
    int index[axes];
    for (int k = 0; k < axes; k++) index[k] = taps.first[k] + W::offset(n, k);
    const Texel texel = texel_of(index);
    const bool adds = has && texel.inside;
    const uint32 all = lanes_that(adds);
    const int place = num_ones(all & ((1u << lane.lane) - 1));
    if (adds) {
      texels[place] = totals + (int64)texel.number * total_width + first_channel<Channels>(lane.part) * words;
      for (int k = 0; k < width; k++) window[place * width + k] = value.v[k] * weight_of<W>(taps, n);
    }
    wait_for_lanes();
    for (int k = lane.lane; k < num_ones(all) * width; k += lanes)
      if (window[k] != 0) add_to_texel(arrays, texels[k / width] + k % width * words, load_shared<piece_width>(window + k));
    wait_for_lanes();
  }
}

// Calls a function with each tap of a sample: with the place of its texel, whether it has one, and its weight.
template <class W, class F> DEVICE void with_taps(const Arrays& arrays, Position at, const Lane& lane, F function) {
  const Taps<W::factors> taps = taps_of(W(), coords_of(arrays, at));
#pragma unroll
  for (int n = 0; n < W::taps; n++) {
    int index[axes];
    for (int k = 0; k < axes; k++) index[k] = taps.first[k] + W::offset(n, k);
    const Texel texel = texel_of(index);
    function(place_of(texel.number), at.exists && lane.takes_part && texel.inside, weight_of<W>(taps, n));
  }
}

// Stores the window of a tile that lies across the border of a texture. The window covers texels, not indices. If samples lie
// too far apart for it, marks the squares that they add to. Returns the bits of the largest value.
template <class W, class Pull>
DEVICE int store_tile(const Arrays& arrays, float* window, int tile, const Lane& lane, bool inside, Pull pull) {
  int low_y = 1 << 30, low_x = low_y, high_y = -1, high_x = -1, largest = 0;
#pragma unroll 1
  for (int s = 0; s < steps && !inside; s++)
    with_taps<W>(arrays, position_of<Tiles>(tile, lane.number, s), lane, [&](Place at, bool has, float) {
      if (!has) return;
      low_y = min(low_y, at.y), low_x = min(low_x, at.x), high_y = max(high_y, at.y), high_x = max(high_x, at.x);
    });
  low_y = least_of_lanes(low_y), low_x = least_of_lanes(low_x);
  const int rows = max(0, greatest_of_lanes(high_y) - low_y + 1), columns = max(0, greatest_of_lanes(high_x) - low_x + 1);
  const int stride = columns | 1, here[1] = {0};
  const bool fits = !inside && (float)rows * stride <= window_cells;
  bool marks = false;
  if (fits) {
    set_window_to_zero(window, rows * stride, lane.lane);
  } else {
    if (lane.lane == 0) {
      note_rest(arrays, tile, {0, 0, samples_apart, 0});
      if (count_atomically(marks_of(arrays) + apart_mark) >= most_apart) marks_of(arrays)[all_mark] = 1;
    }
    marks = !latest(arrays.marks + all_mark);
  }
#pragma unroll 2
  for (int s = 0; s < steps; s++) {
    const Position at = position_of<Tiles>(tile, lane.number, s);
    const Value value = value_of(arrays, at, lane.part);
    largest = largest_bits(largest, value);
    pull(s, at, value);
    if (!fits && !marks) continue;
    with_taps<W>(arrays, at, lane, [&](Place at, bool has, float weight) {
      const int cell = (at.y - low_y) * stride + at.x - low_x;
      if (fits) add_in_turns(window, has, cell, lane, here, [&](int) { return product(value, weight); });
      else if (has) mark_square(arrays, square_of(at));
    });
  }
  wait_for_lanes();
  if (fits) store_window(arrays, window, {low_y, low_x, rows, columns | stride << 16}, tile, lane.lane);
  return largest;
}

// Adds the samples of a tile by one walk: in a window of shared memory, or one by one if the window would not fit.
template <int walk>
DEVICE void add_tile(const Arrays& arrays, const Totals& totals, float* window, float* own_texture, int tile, const Lane& lane,
                     Sums& sums) {
  typedef Walk<walk> W;
  constexpr bool finds_cotangents = pulls && walk == 0;
  const int known = stores ? arrays.marks[largest_mark] : 0;
  if constexpr (adds_rest) {
    const Box box = ((const Box*)arrays.boxes)[tile];
    if (!arrays.marks[all_mark] && box.rows < 0 && box.rows != samples_apart) {
      const int texture = first_axis > 0 ? taps_of(W(), coords_of(arrays, position_of<Tiles>(tile, 0, 0))).first[0] : 0;
      return add_crowd(arrays, totals, window, box, texture, tile, lane.lane);
    }
  }
  Coords kept[keeps_coords ? steps : 1];
  const auto coords_of_step = [&](int s, Position at) -> Coords {
    if constexpr (keeps_coords) return kept[s];
    else return coords_of(arrays, at);
  };
  Window of;
  for (int k = 0; k < axes; k++) of.low[k] = 2147483647, of.size[k] = -2147483647 - 1;
#pragma unroll 8
  for (int s = 0; s < steps; s++) {
    const Position at = position_of<Tiles>(tile, lane.number, s);
    const Coords coords = coords_of(arrays, at);
    if (keeps_coords) kept[s] = coords;
    const Taps<W::factors> taps = taps_of(W(), coords);
    if (at.exists)
      for (int k = 0; k < axes; k++) {
        of.low[k] = min(of.low[k], taps.first[k]);
        of.size[k] = max(of.size[k], taps.first[k] + W::span(k));  // the last tap; the size follows from it below
      }
  }
  float cells = 1;
#pragma unroll
  for (int k = axes - 1; k >= 0; k--) {
    of.low[k] = least_of_lanes(of.low[k]);
    const uint32 rest = (uint32)greatest_of_lanes(of.size[k]) - (uint32)of.low[k];
    of.stride[k] = k == axes - 1 ? 1 : (int)min(cells, 1e6f);
    of.size[k] = rest + 1;
    // To avoid conflicts of banks, rows have an odd length. If lanes take the taps of one sample, the length is 4 more than a
    // multiple of 8, so that rows begin in different banks.
    const bool is_row = k == axes - 1 && k > 0;
    const uint32 pitch = !is_row ? rest + 1 : W::many ? (rest + 4) / 8 * 8 + 4 : (rest + 1) | 1;
    cells *= rest < 65536 ? (float)pitch : 1e9f;
    if constexpr (W::many)
      if (k == axes - 2) cells += (W::plane - (int)min(cells, 1e6f)) & 31;
  }
  int largest = 0;
  const bool crowded = stores && is_crowded<W>(of, cells);
  if (cells <= window_cells && (!stores || crowded || holds_texels(of))) {
    const auto place_of = [&](const int (&index)[axes]) {
      int cell = 0;
      for (int k = 0; k < axes; k++) cell += index[k] * of.stride[k];
      return cell;
    };
    Share<W> own[boxes<W>];
    int tap_steps[W::many ? 1 : W::taps], places[boxes<W>];
#pragma unroll
    for (int n = 0; n < (W::many ? 0 : W::taps); n++) {
      tap_steps[n] = 0;
      for (int k = 0; k < axes; k++) tap_steps[n] += W::offset(n, k) * of.stride[k];
    }
    if constexpr (W::many)
#pragma unroll
      for (int m = 0; m < boxes<W>; m++) {
        own[m] = share_of_box<W>(lane.lane, m);
        places[m] = (place_of(own[m].offset) * Channels::parts + own[m].part) * Channels::width;
      }
    set_window_to_zero(window, (int)cells, lane.lane);
    // The sums of a lane over a run of samples in one cell.
    bool holds = false;
    int held_cell = 0;
    Value held[W::taps] = {};
#pragma unroll batches_at_once
    for (int s = 0; s < steps; s += batch) {
      Value values_of_batch[batch];
#pragma unroll
      for (int j = 0; j < batch; j++)
        values_of_batch[j] = value_of(arrays, position_of<Tiles>(tile, lane.number, s + j), lane.part);
#pragma unroll
      for (int j = 0; j < batch; j++) {
        const Position at = position_of<Tiles>(tile, lane.number, s + j);
        if constexpr (skips) values_of_batch[j] = value_if_added(values_of_batch[j], coords_of_step(s + j, at));
        if constexpr (stores) largest = largest_bits(largest, values_of_batch[j]);
        if constexpr (finds_cotangents)
          pull_sample(arrays, at, coords_of_step(s + j, at), values_of_batch[j], lane, sums);
      }
#pragma unroll
      for (int j = 0; j < batch; j++) {
        const Position at = position_of<Tiles>(tile, lane.number, s + j);
        const bool exists = at.exists && lane.takes_part;
        const Value value = values_of_batch[j];
        const Taps<W::factors> taps = taps_of(W(), coords_of_step(s + j, at));
        int cell = 0;
        for (int k = 0; k < axes; k++) cell += (taps.first[k] - of.low[k]) * of.stride[k];
        if constexpr (W::many) {
          const int first[axes] = {exists ? cell : 0};
          add_by_taps<W>(first, taps, exists ? value : Value{}, lane, own, [&](const int (&at)[axes], const Value (&terms)[boxes<W>]) {
            float* const from = window + at[0] * row;
            Value sums[boxes<W>];
            for (int m = 0; m < boxes<W>; m++)
              if (own[m].exists) sums[m] = load_shared<Channels::width>(from + places[m]);
            for (int m = 0; m < boxes<W>; m++)
              for (int k = 0; k < Channels::width; k++) sums[m].v[k] += terms[m].v[k];
            for (int m = 0; m < boxes<W>; m++)
              if (own[m].exists) store_shared(from + places[m], sums[m]);
          });
        } else if constexpr (takes_runs) {
          const bool stays = holds && cell == held_cell, leaves = exists && holds && !stays;
          if (any_lane(leaves)) add_in_turns(window, leaves, held_cell, lane, tap_steps, [&](int n) { return held[n]; });
          if (exists) {
#pragma unroll
            for (int n = 0; n < W::taps; n++) {
              const Value more = product(value, weight_of<W>(taps, n));
              for (int k = 0; k < Channels::width; k++) held[n].v[k] = (stays ? held[n].v[k] : 0) + more.v[k];
            }
            held_cell = cell, holds = true;
          }
        } else {
          add_in_turns(window, exists, cell, lane, tap_steps, [&](int n) { return product(value, weight_of<W>(taps, n)); });
        }
      }
    }
    if constexpr (takes_runs) add_in_turns(window, holds, held_cell, lane, tap_steps, [&](int n) { return held[n]; });
    wait_for_lanes();
    if (stores && crowded) store_crowd(arrays, window, of, (int)cells, tile, lane.lane);
    else if constexpr (stores) store_window(arrays, window, box_of(of), tile, lane.lane);
    else if constexpr (writes_whole) write_whole(own_texture, window, of, lane.lane);
    else add_window(arrays, totals, window, of, lane.lane, !adds_rest || is_rest(arrays, tile));
    wait_for_lanes();
  } else if constexpr (stores) {
    largest = store_tile<W>(arrays, window, tile, lane, holds_texels(of), [&](int s, Position at, const Value& value) {
      if constexpr (finds_cotangents) pull_sample(arrays, at, coords_of_step(s, at), value, lane, sums);
    });
  } else {
    if constexpr (writes_whole) set_to_zero(own_texture, lane.lane);
    Share<W> own[W::many ? shares<W> : 1];
    if constexpr (W::many)
#pragma unroll
      for (int m = 0; m < shares<W>; m++) own[m] = share_of<W>(lane.lane, m);
#pragma unroll 1
    for (int s = 0; s < steps; s++) {
      const Position at = position_of<Tiles>(tile, lane.number, s);
      const Coords coords = coords_of(arrays, at);
      const Value value = value_if_added(value_of(arrays, at, lane.part), coords);
      const Taps<W::factors> taps = taps_of(W(), coords);
      if constexpr (finds_cotangents) pull_sample(arrays, at, coords, value, lane, sums);
      const bool has = at.exists && lane.takes_part;
      if constexpr (W::many)
        add_by_taps<W>(taps.first, taps, has ? value : Value{}, lane, own,
                       [&](const int (&first)[axes], const Value (&terms)[shares<W>]) {
                         add_terms<W>(arrays, totals, first, terms, own);
                       });
      else if constexpr (deterministic) add_samples_exactly<W>(arrays, totals, window, value, taps, has, lane);
      else if (has) add_sample<W>(arrays, totals, value, taps, lane.part);
    }
  }
  if constexpr (stores) note_largest(arrays, largest, known, lane.lane);
}
