#pragma once
// The sizes and switches of one kernel, by convolution_kernel.py.
#include "trace/scalars.cuh"

constexpr int threads = 32;  // of a block
DEVICE constexpr float weight(int k) { constexpr float all[] = {1.7320507764816284e+00f, (-4.641016125679016e-01f), 1.2435565143823624e-01f, (-3.332099691033363e-02f), 8.928334340453148e-03f, (-2.392339985817671e-03f), 6.410255446098745e-04f, (-1.717622799333185e-04f), 4.6023564209463075e-05f, (-1.2331976904533803e-05f), 3.3043431812984636e-06f, (-8.853961048771453e-07f), 2.3724116715584387e-07f, (-6.356857795708493e-08f), 1.7033150001566355e-08f, (-4.564018496466815e-09f)}; return all[k]; }  // of the values at a distance, on both sides
constexpr int reach = 15;  // the largest distance
constexpr int before = 0;  // how far the first output lies from the first value
constexpr int outer = 512;  // how many arrays there are
constexpr int length = 542;  // the rows of an array
constexpr int results = 512;  // the rows of the result of an array
constexpr int inner = 4;  // the numbers of a row
constexpr int steps = 128;  // the rows of results of a thread, or of a warp
constexpr int chunks = 4;  // the parts of an array, each of `steps` rows of results
