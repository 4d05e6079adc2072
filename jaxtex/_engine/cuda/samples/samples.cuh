#pragma once
#include "samples/position.cuh"
#include "trace/scalars.cuh"

// Of a sample: the number of its value, its own number, and that of the first texel of the texture it reads.
struct Offsets { int value, sample, texels; };

// `Channels` says how the channels of a texel are divided among threads: how many there are, the parts of a texel, the
// width of a part, and whether parts are rows that are aligned in memory.

// The last part is moved back where the channels do not divide; so many of its channels belong to the part before.
template <class Channels> DEVICE int overlap_of(int part) {
  return part == Channels::parts - 1 ? Channels::parts * Channels::width - Channels::count : 0;
}
// The first of the channels of a part.
template <class Channels> DEVICE int first_channel(int part) {
  return part * Channels::width - overlap_of<Channels>(part);
}

// The channels of a value that a thread takes, of the value of a number.
template <class Channels, class Slice> DEVICE Row<float, Channels::width> load_value(const float* values, int number, int part) {
  const float* const from = values + place_in<Slice>(number) + first_channel<Channels>(part);
  if constexpr (Channels::aligned) return load_aligned_row<Channels::width>(from);
  else return load_row<Channels::width>(from);
}
