#pragma once
#include "trace/warp.cuh"
#include "scatter/traced.cuh"

// What a lane does in all steps of its work: it takes a part of the channels of some samples, each of which has a number
// in a step. Where parts are fewer than the lanes of a sample, some lanes take no part.
struct Lane { int lane, number, part; bool takes_part; };

DEVICE Lane lane_of(uint32 thread) {
  const int lane = thread % lanes, part = lane % lanes_per_sample;
  const bool takes_part = part < Channels::parts;
  return {lane, lane / lanes_per_sample, takes_part ? part : 0, takes_part};
}

// A value without the channels that belong to the part before.
DEVICE Value value_of(const Arrays& arrays, Position at, int part) {
  Value value = load_value<Channels, ValueSlice>(arrays.values, offsets_of(at).value, part);
  for (int k = 0; k < overlap_of<Channels>(Channels::parts - 1); k++)
    if (k < overlap_of<Channels>(part)) value.v[k] = 0;
  return value;
}

// A sample's value; zero if it is not added.
DEVICE Value value_if_added(const Value& value, const Coords& coords) {
  if (!skips || is_added(coords)) return value;
  return Value{};
}

// Finds the cotangents of a sample's operands, summed over the lanes that share its channels: those that differ from
// sample to sample are stored, and the others added to the sums of the tile.
DEVICE void pull_sample(const Arrays& arrays, Position at, const Coords& coords, const Value& value, const Lane& lane,
                        Sums& sums) {
  const Offsets offsets = offsets_of(at);
  const int skipped = overlap_of<Channels>(lane.part);
  Slopes slopes = slopes_of(arrays, coords, value, offsets.texels, first_channel<Channels>(lane.part), skipped);
  for (int k = 0; k < num_slopes; k++) {
    if (!lane.takes_part) slopes.along[k] = 0;
    for (int bits = 1; bits < lanes_per_sample; bits *= 2) slopes.along[k] += of_lane_xor(slopes.along[k], bits);
  }
  if (at.exists && lane.lane % lanes_per_sample == 0)
    keep_cotangents(arrays, offsets.sample, cotangents_of(arrays, at, slopes), sums);
}
