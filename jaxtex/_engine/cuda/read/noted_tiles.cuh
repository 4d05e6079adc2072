#pragma once
#include "trace/scalars.cuh"

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
