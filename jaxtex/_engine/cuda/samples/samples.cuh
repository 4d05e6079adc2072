#pragma once
#include "samples/position.cuh"
#include "trace/scalars.cuh"

// The numbers of a sample's value, of the sample, and of the first texel of its texture.
struct Offsets { int value, sample, texels; };

// `Channels` says how the channels of a texel are divided among threads: their count, the number of parts, the width of
// a part, and whether parts are aligned in memory.

// The number of channels that a part shares with the part before: the last part begins earlier if `width` does not
// divide the channels.
template <class Channels> DEVICE int overlap_of(int part) {
  return part == Channels::parts - 1 ? Channels::parts * Channels::width - Channels::count : 0;
}
// The first of the channels of a part.
template <class Channels> DEVICE int first_channel(int part) {
  return part * Channels::width - overlap_of<Channels>(part);
}

// A thread's channels of value `number`, of 32 bits, or of 16.
template <class Channels, class Slice, class T>
DEVICE Row<float, Channels::width> load_value(const T* values, int number, int part) {
  const T* const from = values + place_in<Slice>(number) + first_channel<Channels>(part);
  Row<T, Channels::width> row;
  if constexpr (Channels::aligned) row = load_aligned_row<Channels::width>(from);
  else row = load_row<Channels::width>(from);
  Row<float, Channels::width> value;
  for (int k = 0; k < Channels::width; k++) value.v[k] = converted<float, T>(row.v[k]);
  return value;
}
