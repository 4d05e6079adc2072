#pragma once
// The squares of texels of one kernel, by stored.py.

// Squares of texels, and the windows on them.
struct Stored {
  static constexpr int side = 32;  // of a square of texels
  static constexpr int down = 256;  // the texels of a texture
  static constexpr int across = 192;
  static constexpr int squares_down = 8;  // of a texture
  static constexpr int squares_across = 6;
  static constexpr int squares = 48;  // of all textures
  static constexpr int most_windows = 128;  // of a square, so that they are added in order
};
