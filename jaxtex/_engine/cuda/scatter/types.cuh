#pragma once
#include "trace/scalars.cuh"
#include "scatter/config.cuh"

// The numbers of a cell of a window, the words of a texel's totals, and the batches that a loop takes at once.
constexpr int row = Channels::parts * Channels::width, total_width = Channels::count * words;
constexpr int batches_at_once = keeps_coords ? steps / batch : 1;

// C++ has no empty arrays.
DEVICE constexpr int at_least_one(int n) { return n > 0 ? n : 1; }

// A window has room for at least four floats, as it is set to zero in groups of four.
DEVICE constexpr int at_least_four(int n) { return n > 4 ? n : 4; }

// The taps of a walk: the first one on each axis of the window, and the factors of which their weights are products.
template <int factors> struct Taps { int first[axes]; float factor[factors]; };
struct Texel { int number; bool inside; };
// The derivatives of a sample in its coordinates, times its cotangent; and the cotangents of its operands.
struct Slopes { float along[at_least_one(num_slopes)]; };
struct Cotangents { float of[at_least_one(num_cotangents)]; };
// Channels that are added to memory at once.
typedef Row<float, piece_width> Piece;
// A lane's sums of cotangents: first those of operands that all samples of a tile share, then those of operands that the
// reads of a sum share.
typedef float Sums[at_least_one(num_sums + (adds_cotangents ? num_cotangents : 0))];
