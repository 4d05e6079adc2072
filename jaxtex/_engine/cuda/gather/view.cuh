#pragma once
#include "trace/scalars.cuh"
#include "gather/config.cuh"

// How an image of samples lies on a texture: see `view` in `gather_source.py`.
struct View {
  float offset[dims], bound[dims], inverse[dims - 1][dims], half[dims - 1];
  float along[dims], step[dims - 1][dims], half_row[dims];
  float operands[operands_of_view], taken;
};
// On each axis: the position of a sample where weights follow from it, else its first tap and the weights of all taps.
struct AxisTaps { float position[dims]; int first[dims]; float weight[dims][num_taps]; };
