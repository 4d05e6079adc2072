#pragma once
// What a thread of one kernel computes, by window_source.py.
#include "samples/samples.cuh"
#include "scatter/config.cuh"
#include "scatter/types.cuh"

// What the kernel reads and writes.
struct Arrays {
  const float* values;
  const float* texels;
  const float* operand_0;
  const float* operand_1;
  float* totals;
  float* cotangent_0;
  float* cotangent_1;
  const float* views;
  const int* unit;
  float* windows;
  float* crowds;
  int* boxes;
  int* lists;
  int* marks;
  float* tile_sums;
};

// The coordinates of a sample: y, x.
struct Coords {
  float c0;
  float c1;
};

template <int number> struct Walk;

// Walk 0: 4 taps along y, x.
template <> struct Walk<0> {
  static constexpr int taps = 4;
  static constexpr int factors = 4;  // of the weights of all taps
  static constexpr int steps = 2;  // each of which has a factor of the weight of a tap
  static constexpr bool adds_pairs = false;  // whether two taps are one addition to memory
  static constexpr bool many = false;  // whether the lanes of a warp take the taps of one sample
  static DEVICE constexpr int span(int k) { constexpr int all[] = {1, 1}; return all[k]; }  // from the first tap to the last on each axis
  static DEVICE constexpr int offset(int tap, int axis) { constexpr int all[][axes] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}; return all[tap][axis]; }  // from the first tap
  static DEVICE constexpr int factor(int tap, int step) { constexpr int all[][steps] = {{0, 2}, {0, 3}, {1, 2}, {1, 3}}; return all[tap][step]; }  // of the weight of a tap
};

typedef float* Totals;

// The taps of axes y, x, walk 0.
DEVICE Taps<Walk<0>::factors> taps_of(Walk<0>, const Coords& coords) {
  const bool v0 = coords.c0 == coords.c0;
  const float v1 = converted<float, int>(0);
  const float v2 = v0 ? coords.c0 : v1;
  const float v3 = v2 * 2.56e+02f;
  const float v4 = v3 - 5.0e-01f;
  const float v5 = floor(v4);
  const int v6 = converted<int, float>(v5);
  const int v7 = minimum(v6, 256);
  const float v8 = converted<float, int>(v7);
  const float v9 = v4 - v8;
  const float v10 = v4 - v5;
  const float v11 = v9 - 5.0e-01f;
  const float v12 = fabs(v11);
  const bool v13 = v12 < 6.25e-01f;
  const bool v14 = v10 >= 0.0e+00f;
  const float v15 = v14 ? v10 : v1;
  const float v16 = v13 ? v9 : v15;
  const float v17 = v16 * (-1.0e+00f);
  const float v18 = v17 + 1.0e+00f;
  const int v19 = wrapped_add(v7, 1);
  const int v20 = maximum(0, v7);
  const int v21 = minimum(255, v20);
  const int v22 = maximum(0, v19);
  const int v23 = minimum(255, v22);
  const bool v24 = coords.c1 == coords.c1;
  const float v25 = v24 ? coords.c1 : v1;
  const float v26 = v25 * 1.92e+02f;
  const float v27 = v26 - 5.0e-01f;
  const float v28 = floor(v27);
  const int v29 = converted<int, float>(v28);
  const int v30 = minimum(v29, 192);
  const float v31 = converted<float, int>(v30);
  const float v32 = v27 - v31;
  const float v33 = v27 - v28;
  const float v34 = v32 - 5.0e-01f;
  const float v35 = fabs(v34);
  const bool v36 = v35 < 6.25e-01f;
  const bool v37 = v33 >= 0.0e+00f;
  const float v38 = v37 ? v33 : v1;
  const float v39 = v36 ? v32 : v38;
  const float v40 = v39 * (-1.0e+00f);
  const float v41 = v40 + 1.0e+00f;
  const int v42 = wrapped_add(v30, 1);
  const int v43 = maximum(0, v30);
  const int v44 = minimum(191, v43);
  const int v45 = maximum(0, v42);
  const int v46 = minimum(191, v45);
  return {{v7, v30}, {v18, v16, v41, v39}};
}

// The offsets of a sample in memory.
DEVICE Offsets offsets_of(Position at) {
  const int v0 = wrapped_mul(0, 49152);
  const int v1 = wrapped_mul(at.y, 192);
  const int v2 = wrapped_add(v1, at.x);
  return {v2, v2, v0};
}

// The coordinates of a sample along y, x.
DEVICE Coords coords_of(const Arrays& arrays, Position at) {
  const int v0 = wrapped_mul(at.y, 192);
  const int v1 = wrapped_add(v0, at.x);
  const Row<float, 1> v2 = load_row<1>(arrays.operand_0 + v1);
  const Row<float, 1> v3 = load_row<1>(arrays.operand_1 + v1);
  return {v2.v[0], v3.v[0]};
}

// The texel at indices before any address rule: y, x.
DEVICE Texel texel_of(const int (&at)[axes]) {
  const int v0 = maximum(0, at[0]);
  const int v1 = minimum(255, v0);
  const int v2 = maximum(0, at[1]);
  const int v3 = minimum(191, v2);
  const int v4 = wrapped_mul(v1, 192);
  const int v5 = wrapped_add(v4, v3);
  return {v5, true};
}

// Not used.
DEVICE bool is_added(const Coords& coords) {
  return {};
}

// A lane's part of the derivatives along coordinates, without the first `skipped` channels.
DEVICE Slopes slopes_of(const Arrays& arrays, const Coords& coords, const Value& value, int base, int first, int skipped) {
  const bool v0 = coords.c0 == coords.c0;
  const float v1 = converted<float, int>(0);
  const float v2 = v0 ? coords.c0 : v1;
  const float v3 = v2 * 2.56e+02f;
  const float v4 = v3 - 5.0e-01f;
  const float v5 = floor(v4);
  const int v6 = converted<int, float>(v5);
  const int v7 = minimum(v6, 256);
  const float v8 = converted<float, int>(v7);
  const float v9 = v4 - v8;
  const float v10 = v4 - v5;
  const float v11 = v9 - 5.0e-01f;
  const float v12 = fabs(v11);
  const bool v13 = v12 < 6.25e-01f;
  const bool v14 = v10 >= 0.0e+00f;
  const float v15 = v14 ? v10 : v1;
  const float v16 = v13 ? v9 : v15;
  const float v17 = v0 ? 2.56e+02f : v1;
  const float v18 = v17 * (-1.0e+00f);
  const int v19 = wrapped_add(v7, 1);
  const int v20 = maximum(0, v7);
  const int v21 = minimum(255, v20);
  const int v22 = maximum(0, v19);
  const int v23 = minimum(255, v22);
  const bool v24 = coords.c1 == coords.c1;
  const float v25 = v24 ? coords.c1 : v1;
  const float v26 = v25 * 1.92e+02f;
  const float v27 = v26 - 5.0e-01f;
  const float v28 = floor(v27);
  const int v29 = converted<int, float>(v28);
  const int v30 = minimum(v29, 192);
  const float v31 = converted<float, int>(v30);
  const float v32 = v27 - v31;
  const float v33 = v27 - v28;
  const float v34 = v32 - 5.0e-01f;
  const float v35 = fabs(v34);
  const bool v36 = v35 < 6.25e-01f;
  const bool v37 = v33 >= 0.0e+00f;
  const float v38 = v37 ? v33 : v1;
  const float v39 = v36 ? v32 : v38;
  const float v40 = v39 * (-1.0e+00f);
  const float v41 = v40 + 1.0e+00f;
  const int v42 = wrapped_add(v30, 1);
  const int v43 = maximum(0, v30);
  const int v44 = minimum(191, v43);
  const int v45 = maximum(0, v42);
  const int v46 = minimum(191, v45);
  const int v47 = wrapped_mul(v21, 192);
  const int v48 = wrapped_add(v47, v44);
  const int v49 = wrapped_add(base, v48);
  const Row<float, 4> v50 = load_aligned_row<4>(arrays.texels + ((int64)v49 * 4ll + (int64)first * 1ll));
  const float v51 = v50.v[0] * value.v[0];
  const float v52 = v50.v[1] * value.v[1];
  const float v53 = v50.v[2] * value.v[2];
  const float v54 = v50.v[3] * value.v[3];
  const float v55 = v51 + v52;
  const float v56 = v55 + v53;
  const float v57 = v56 + v54;
  const float v58 = v57 * v41;
  const int v59 = wrapped_add(v47, v46);
  const int v60 = wrapped_add(base, v59);
  const Row<float, 4> v61 = load_aligned_row<4>(arrays.texels + ((int64)v60 * 4ll + (int64)first * 1ll));
  const float v62 = v61.v[0] * value.v[0];
  const float v63 = v61.v[1] * value.v[1];
  const float v64 = v61.v[2] * value.v[2];
  const float v65 = v61.v[3] * value.v[3];
  const float v66 = v62 + v63;
  const float v67 = v66 + v64;
  const float v68 = v67 + v65;
  const float v69 = v68 * v39;
  const float v70 = v58 + v69;
  const float v71 = v70 * v18;
  const int v72 = wrapped_mul(v23, 192);
  const int v73 = wrapped_add(v72, v44);
  const int v74 = wrapped_add(base, v73);
  const Row<float, 4> v75 = load_aligned_row<4>(arrays.texels + ((int64)v74 * 4ll + (int64)first * 1ll));
  const float v76 = v75.v[0] * value.v[0];
  const float v77 = v75.v[1] * value.v[1];
  const float v78 = v75.v[2] * value.v[2];
  const float v79 = v75.v[3] * value.v[3];
  const float v80 = v76 + v77;
  const float v81 = v80 + v78;
  const float v82 = v81 + v79;
  const float v83 = v82 * v41;
  const int v84 = wrapped_add(v72, v46);
  const int v85 = wrapped_add(base, v84);
  const Row<float, 4> v86 = load_aligned_row<4>(arrays.texels + ((int64)v85 * 4ll + (int64)first * 1ll));
  const float v87 = v86.v[0] * value.v[0];
  const float v88 = v86.v[1] * value.v[1];
  const float v89 = v86.v[2] * value.v[2];
  const float v90 = v86.v[3] * value.v[3];
  const float v91 = v87 + v88;
  const float v92 = v91 + v89;
  const float v93 = v92 + v90;
  const float v94 = v93 * v39;
  const float v95 = v83 + v94;
  const float v96 = v95 * v17;
  const float v97 = v71 + v96;
  const float v98 = v16 * (-1.0e+00f);
  const float v99 = v98 + 1.0e+00f;
  const float v100 = v24 ? 1.92e+02f : v1;
  const float v101 = v100 * (-1.0e+00f);
  const float v102 = v57 * v101;
  const float v103 = v68 * v100;
  const float v104 = v102 + v103;
  const float v105 = v104 * v99;
  const float v106 = v82 * v101;
  const float v107 = v93 * v100;
  const float v108 = v106 + v107;
  const float v109 = v108 * v16;
  const float v110 = v105 + v109;
  return {{v97, v110}};
}

// The cotangents of the operands of a sample.
DEVICE Cotangents cotangents_of(const Arrays& arrays, Position at, const Slopes& slopes) {
  const int v0 = wrapped_mul(at.y, 192);
  const int v1 = wrapped_add(v0, at.x);
  const Row<float, 1> v2 = load_row<1>(arrays.operand_0 + v1);
  const Row<float, 1> v3 = load_row<1>(arrays.operand_1 + v1);
  return {{slopes.along[0], slopes.along[1]}};
}

// Stores them, or adds them to the sums of a tile.
DEVICE void keep_cotangents(const Arrays& arrays, int sample, const Cotangents& found, Sums& sums) {
  arrays.cotangent_0[sample] = found.of[0];
  arrays.cotangent_1[sample] = found.of[1];
}

// Adds to memory what reads of a sum share.
DEVICE void add_cotangents(const Arrays& arrays, int sample, const Cotangents& found) {
}

// The kernel.
DEVICE void run(const Arrays& arrays);
extern "C" __global__ void __launch_bounds__(threads, blocks) texture_pullback(const float* __restrict__ values, const float* __restrict__ texels, const float* __restrict__ operand_0, const float* __restrict__ operand_1, const float*, float* __restrict__ totals, float* __restrict__ cotangent_0, float* __restrict__ cotangent_1) {
  run(Arrays{values, texels, operand_0, operand_1, totals, cotangent_0, cotangent_1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
}
