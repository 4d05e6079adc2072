#pragma once
#include "trace/scalars.cuh"

// The sample of a lane in one of its steps: the number of the image, and the place in the image.
struct Position { int outer, z, y, x; bool exists; };

DEVICE constexpr int ceil_div(int n, int d) { return (n + d - 1) / d; }

// Samples are divided into tiles, so that adjacent lanes read adjacent texels. Places outside the image are clamped.
//
// `Tiles` has the size of an image (deep, down, across), the lanes of a tile and the steps (samples) of a lane along each
// axis. Steps are adjacent, or, if `spread`, as far apart as there are lanes. If `by_column`, tiles follow each other down
// a column.
template <class Tiles> DEVICE Position position_of(uint32 tile, uint32 lane, uint32 step) {
  constexpr int tile_deep = Tiles::lanes_deep * Tiles::steps_deep, tiles_deep = ceil_div(Tiles::deep, tile_deep);
  constexpr int tile_down = Tiles::lanes_down * Tiles::steps_down, tiles_down = ceil_div(Tiles::down, tile_down);
  constexpr int tile_across = Tiles::lanes_across * Tiles::steps_across;
  constexpr int tiles_across = ceil_div(Tiles::across, tile_across);
  constexpr int lane_across = Tiles::spread ? 1 : Tiles::steps_across;
  constexpr int step_across = Tiles::spread ? Tiles::lanes_across : 1;
  constexpr int lane_down = Tiles::spread ? 1 : Tiles::steps_down, step_down = Tiles::spread ? Tiles::lanes_down : 1;
  constexpr int tiles_along = Tiles::by_column ? tiles_down : tiles_across;
  constexpr int lines = Tiles::by_column ? tiles_across : tiles_down;
  const uint32 along = tile % tiles_along, line = tile / tiles_along % lines;
  const uint32 column = Tiles::by_column ? line : along, row = Tiles::by_column ? along : line;
  const uint32 slice = tile / (tiles_across * tiles_down) % tiles_deep;
  Position at;
  at.x = column * tile_across + lane % Tiles::lanes_across * lane_across + step % Tiles::steps_across * step_across;
  at.y = row * tile_down + lane / Tiles::lanes_across % Tiles::lanes_down * lane_down +
         step / Tiles::steps_across % Tiles::steps_down * step_down;
  at.z = slice * tile_deep + lane / (Tiles::lanes_across * Tiles::lanes_down) * Tiles::steps_deep +
         step / (Tiles::steps_across * Tiles::steps_down);
  at.outer = tile / (tiles_across * tiles_down * tiles_deep);
  at.exists = (Tiles::deep % tile_deep == 0 || at.z < Tiles::deep) &&
              (Tiles::down % tile_down == 0 || at.y < Tiles::down) &&
              (Tiles::across % tile_across == 0 || at.x < Tiles::across);
  if (!at.exists)
    at.x = min(at.x, Tiles::across - 1), at.y = min(at.y, Tiles::down - 1), at.z = min(at.z, Tiles::deep - 1);
  return at;
}

// The offset of the channels of texel `number` in an array. `Slice` says which adjacent numbers of a row are texels.
template <class Slice> DEVICE int64 place_in(int number) {
  if constexpr (Slice::texels == 1)
    return (int64)number * Slice::row + Slice::start;
  else
    return (int64)(number / Slice::texels) * Slice::row + number % Slice::texels * Slice::channels + Slice::start;
}
