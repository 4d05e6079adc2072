// A read. A block takes a tile of the samples; a thread takes `steps` of these, and `width` adjacent channels.
//
// `read_source.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "trace/warp.cuh"
#include "samples/position.cuh"

// Iterates over the tiles that another kernel has noted, among `count` tiles, in one of `blocks` blocks. Blocks take turns
// at groups of four tiles, so that noted tiles, which are often adjacent, are divided evenly.
template <int count, int blocks> struct NotedTiles {
  const uint8* notes;
  int tile;

  DEVICE explicit NotedTiles(const uint8* all) : notes(all), tile((int)blockIdx.x * 4 - 1) {}

  // Moves to the next noted tile. Returns false if there is none.
  DEVICE bool next() {
    tile++;
    for (;;) {
      if (tile % 4 == 0) {
        // After four tiles, go on to the next four of this block.
        if (tile > (int)blockIdx.x * 4) tile += (blocks - 1) * 4;
        while (tile < count && bits_as<uint32>(load_aligned_row<4>(notes + tile)) == 0) tile += blocks * 4;
        if (tile >= count) return false;
      }
      if (notes[tile] != 0) return true;
      tile++;
    }
  }
};
#include "read/config.cuh"
#include "read/traced.cuh"

// The functions of sums and folds are templates: a kernel of single reads lacks the traced functions that they call. `S` is
// `State`, and `C` is `Coords`.

template <class C> DEVICE bool are_outside(const C (&coords)[reads_at_once]) {
  bool outside = true;
  for (int k = 0; k < reads_at_once; k++) outside = outside && all_outside(coords[k]);
  return outside;
}

// Folds the first reads of a group, `reads_at_once` together: those whose taps are all inside need no checks, and those
// whose taps are all outside are zero. Returns false if the state is final.
template <class C, class S>
DEVICE bool fold_inside(const Arrays& arrays, Position at, int part, int group, int count, S& state) {
#pragma unroll 1
  for (int number = 0; number < count; number += reads_at_once) {
    C coords[reads_at_once];
    bool inside = true;
#pragma unroll
    for (int k = 0; k < reads_at_once; k++) {
      coords[k] = coords_of(arrays, at, group, number + k);
      inside = inside && all_inside(coords[k]);
    }
    if (inside) {
#pragma unroll
      for (int k = 0; k < reads_at_once; k++)
        state = folded(state, coords[k], read_inside(arrays, at, part, coords[k]).value);
    } else if (are_outside(coords)) {
      for (int k = 0; k < reads_at_once; k++) state = folded(state, coords[k], Sum{});
    } else {
#pragma unroll
      for (int k = 0; k < reads_at_once; k++)
        state = folded(state, coords[k], read_at(arrays, at, part, coords[k]).value);
    }
    if (is_final(state)) return false;
  }
  return true;
}

// The sum of all reads of a sample, or another fold of them. The loop asks only before every fourth read whether the
// state is final, so that the loads of `reads_at_once` reads overlap.
template <class C, class S> DEVICE S fold_of_reads(const Arrays& arrays, Position at, int part) {
  constexpr int first = asks_inside ? group_size / reads_at_once * reads_at_once : 0;
  S state;
  start(state);
  for (int group = 0; group < num_reads / group_size; group++) {
    if constexpr (asks_inside)
      if (!fold_inside<C>(arrays, at, part, group, first, state)) return state;
#pragma unroll reads_at_once
    for (int number = first; number < group_size; number++) {
      if (number % 4 == 0 && is_final(state)) return state;
      const C coords = coords_of(arrays, at, group, number);
      Sum term = {};
      if (counts(coords)) term = term_of(coords, read_at(arrays, at, part, coords).value);
      state = folded(state, coords, term);
    }
  }
  return state;
}

// A thread's channels of the result of a sample, and whether the tile of the sample is noted for another kernel.
struct Found { Result result; bool noted; };

// `coords` are the coordinates of a single read; the reads of a sum compute their own.
template <class C> DEVICE Found read_sample(const Arrays& arrays, Position at, int part, const C& coords) {
  if constexpr (num_reads > 0) {
    return {result_of_state(fold_of_reads<C, State>(arrays, at, part)), false};
  } else {
    const auto read = read_at(arrays, at, part, coords);
    return {result_of_value(read.value), read.noted};
  }
}

// Stores a thread's channels of all results of a sample.
DEVICE void store_result(const Arrays& arrays, Position at, int part, const Result& result) {
  const Place place = place_of(at, part);
#pragma unroll
  for (int k = 0; k < num_results; k++) {
    Stored* const to = result_of(arrays, k) + place_in<ResultSlice>(place.sample) + place.channel;
    const Row<Stored, result_width> row = load_row<result_width>(result.v + k * result_width);
    if constexpr (stores_aligned) store_aligned_row(to, row);
    else store_row(to, row);
  }
}

// Reads a tile whose warps have two rows of samples each. A warp loads coordinates and stores results 32 of a row at a time,
// so that they fill lines of memory. It reads 16 samples of both rows at a time, since these share texels.
DEVICE void read_lines(const Arrays& arrays, int tile) {
  constexpr int lanes = 32, pairs = steps > 1 ? steps / 2 : 1;
  const int lane = threadIdx.x % lanes;
  Position places[2 * pairs];
  Coords coords[2 * pairs];
  Result results[2 * pairs];
#pragma unroll
  for (int s = 0; s < 2 * pairs; s++) {
    const int thread = threadIdx.x - lane + s / pairs * (lanes / 2) + lane % (lanes / 2);
    places[s] = position_of<Tiles>(tile, thread, s % pairs * 2 + lane / (lanes / 2));
    coords[s] = coords_of(arrays, places[s], 0, 0);
  }
#pragma unroll
  for (int s = 0; s < pairs; s++) exchange_halves(coords[s], coords[s + pairs]);
#pragma unroll
  for (int s = 0; s < 2 * pairs; s++) results[s] = read_sample(arrays, places[s], 0, coords[s]).result;
#pragma unroll
  for (int s = 0; s < pairs; s++) exchange_halves(results[s], results[s + pairs]);
#pragma unroll
  for (int s = 0; s < 2 * pairs; s++)
    if (places[s].exists) store_result(arrays, places[s], 0, results[s]);
}

DEVICE void read_tile(const Arrays& arrays, int tile) {
  if constexpr (in_lines) return read_lines(arrays, tile);
  const int part = threadIdx.x % parts;
  // All coordinates are loaded first, because a load would wait for an earlier store.
  Position places[steps];
  Coords coords[steps];
#pragma unroll
  for (int s = 0; s < steps; s++) {
    places[s] = position_of<Tiles>(tile, threadIdx.x / parts, s);
    if constexpr (num_reads == 0) coords[s] = coords_of(arrays, places[s], 0, 0);
  }
#pragma unroll
  for (int s = 0; s < steps; s++) {
    const Position at = places[s];
    const Found found = read_sample(arrays, at, part, coords[s]);
    if (at.exists) store_result(arrays, at, part, found.result);
    if (at.exists && found.noted) arrays.notes[tile] = 1;
  }
}

DEVICE void run(const Arrays& arrays) {
  if constexpr (num_noted > 0)
    for (NotedTiles<num_noted, num_blocks> tiles(arrays.noted); tiles.next();) read_tile(arrays, tiles.tile);
  else
    read_tile(arrays, blockIdx.x);
}
