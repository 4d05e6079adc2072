#pragma once
#include "trace/scalars.cuh"

// The tiles that another kernel noted, one after the other: of `count`, by so many `blocks`. Blocks take turns at four of
// all, so that a block has few of those that lie side by side.
template <int count, int blocks> struct NotedTiles {
  const uint8* notes;
  int tile;

  DEVICE explicit NotedTiles(const uint8* all) : notes(all), tile((int)blockIdx.x * 4 - 1) {}

  // Moves on to the next one, if there is any.
  DEVICE bool next() {
    tile++;
    for (;;) {
      if (tile % 4 == 0) {
        // After four tiles, the next four of this block.
        if (tile > (int)blockIdx.x * 4) tile += (blocks - 1) * 4;
        while (tile < count && bits_as<uint32>(load_aligned_row<4>(notes + tile)) == 0) tile += blocks * 4;
        if (tile >= count) return false;
      }
      if (notes[tile] != 0) return true;
      tile++;
    }
  }
};
