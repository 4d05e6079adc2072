#pragma once
// What a thread of one kernel computes, by read_source.py.
#include "trace/scalars.cuh"
#include "read/config.cuh"
#include "samples/position.cuh"

// What the kernel reads and writes.
struct Arrays {
  const float* texels;
  const float* operand_0;
  const float* operand_1;
  float* result;
  const uint8* noted;
  uint8* notes;
};

// The coordinates of a sample, and its weight in a mean of several.
struct Coords {
  float c0;
  float c1;
};

// The value of a read, and whether its tile is noted for another kernel.
struct Read { Sum value; bool noted; };
// The number of a sample, and the first channel of a thread.
struct Place { int sample, channel; };

// The coordinates of a sample along its axes (y, x); of a sum of reads, those of one read.
DEVICE Coords coords_of(const Arrays& arrays, Position at, int group, int number) {
  const int v0 = wrapped_mul(at.y, 192);
  const int v1 = wrapped_add(v0, at.x);
  const Row<float, 1> v2 = load_row<1>(arrays.operand_0 + v1);
  const Row<float, 1> v3 = load_row<1>(arrays.operand_1 + v1);
  return {v2.v[0], v3.v[0]};
}

// Where a result lies.
DEVICE Place place_of(Position at, int part) {
  const int v0 = wrapped_mul(at.y, 192);
  const int v1 = wrapped_add(v0, at.x);
  const int v2 = wrapped_mul(part, 4);
  return {v1, v2};
}

// A read: its taps, weights and texels along the axes (y, x).
DEVICE Read read_at(const Arrays& arrays, Position at, int part, const Coords& coords) {
  const int v0 = wrapped_mul(part, 4);
  const bool v1 = coords.c0 == coords.c0;
  const float v2 = converted<float, int>(0);
  const float v3 = v1 ? coords.c0 : v2;
  const float v4 = v3 * 2.56e+02f;
  const float v5 = v4 - 5.0e-01f;
  const float v6 = floor(v5);
  const int v7 = converted<int, float>(v6);
  const int v8 = minimum(v7, 256);
  const float v9 = converted<float, int>(v8);
  const float v10 = v5 - v9;
  const float v11 = v5 - v6;
  const float v12 = v10 - 5.0e-01f;
  const float v13 = fabs(v12);
  const bool v14 = v13 < 6.25e-01f;
  const bool v15 = v11 >= 0.0e+00f;
  const float v16 = v15 ? v11 : v2;
  const float v17 = v14 ? v10 : v16;
  const float v18 = v17 * (-1.0e+00f);
  const float v19 = v18 + 1.0e+00f;
  const int v20 = wrapped_add(v8, 1);
  const int v21 = maximum(0, v8);
  const int v22 = minimum(255, v21);
  const int v23 = maximum(0, v20);
  const int v24 = minimum(255, v23);
  const bool v25 = coords.c1 == coords.c1;
  const float v26 = v25 ? coords.c1 : v2;
  const float v27 = v26 * 1.92e+02f;
  const float v28 = v27 - 5.0e-01f;
  const float v29 = floor(v28);
  const int v30 = converted<int, float>(v29);
  const int v31 = minimum(v30, 192);
  const float v32 = converted<float, int>(v31);
  const float v33 = v28 - v32;
  const float v34 = v28 - v29;
  const float v35 = v33 - 5.0e-01f;
  const float v36 = fabs(v35);
  const bool v37 = v36 < 6.25e-01f;
  const bool v38 = v34 >= 0.0e+00f;
  const float v39 = v38 ? v34 : v2;
  const float v40 = v37 ? v33 : v39;
  const float v41 = v40 * (-1.0e+00f);
  const float v42 = v41 + 1.0e+00f;
  const int v43 = wrapped_add(v31, 1);
  const int v44 = maximum(0, v31);
  const int v45 = minimum(191, v44);
  const int v46 = maximum(0, v43);
  const int v47 = minimum(191, v46);
  const int v48 = wrapped_mul(v22, 192);
  const int v49 = wrapped_add(v48, v45);
  const Row<float, 4> v50 = load_aligned_row<4>(arrays.texels + ((int64)0 * 196608ll + (int64)v49 * 4ll + (int64)v0 * 1ll));
  const float v51 = v50.v[0] * v42;
  const float v52 = v50.v[1] * v42;
  const float v53 = v50.v[2] * v42;
  const float v54 = v50.v[3] * v42;
  const int v55 = wrapped_add(v48, v47);
  const Row<float, 4> v56 = load_aligned_row<4>(arrays.texels + ((int64)0 * 196608ll + (int64)v55 * 4ll + (int64)v0 * 1ll));
  const float v57 = v56.v[0] * v40;
  const float v58 = v56.v[1] * v40;
  const float v59 = v56.v[2] * v40;
  const float v60 = v56.v[3] * v40;
  const float v61 = v51 + v57;
  const float v62 = v52 + v58;
  const float v63 = v53 + v59;
  const float v64 = v54 + v60;
  const float v65 = v61 * v19;
  const float v66 = v62 * v19;
  const float v67 = v63 * v19;
  const float v68 = v64 * v19;
  const int v69 = wrapped_mul(v24, 192);
  const int v70 = wrapped_add(v69, v45);
  const Row<float, 4> v71 = load_aligned_row<4>(arrays.texels + ((int64)0 * 196608ll + (int64)v70 * 4ll + (int64)v0 * 1ll));
  const float v72 = v71.v[0] * v42;
  const float v73 = v71.v[1] * v42;
  const float v74 = v71.v[2] * v42;
  const float v75 = v71.v[3] * v42;
  const int v76 = wrapped_add(v69, v47);
  const Row<float, 4> v77 = load_aligned_row<4>(arrays.texels + ((int64)0 * 196608ll + (int64)v76 * 4ll + (int64)v0 * 1ll));
  const float v78 = v77.v[0] * v40;
  const float v79 = v77.v[1] * v40;
  const float v80 = v77.v[2] * v40;
  const float v81 = v77.v[3] * v40;
  const float v82 = v72 + v78;
  const float v83 = v73 + v79;
  const float v84 = v74 + v80;
  const float v85 = v75 + v81;
  const float v86 = v82 * v17;
  const float v87 = v83 * v17;
  const float v88 = v84 * v17;
  const float v89 = v85 * v17;
  const float v90 = v65 + v86;
  const float v91 = v66 + v87;
  const float v92 = v67 + v88;
  const float v93 = v68 + v89;
  return {{v90, v91, v92, v93}, false};
}

// Not used.
DEVICE Read read_inside(const Arrays& arrays, Position at, int part, const Coords& coords) {
  return {};
}

// Not used.
DEVICE bool all_inside(const Coords& coords) {
  return {};
}

// Not used.
DEVICE bool all_outside(const Coords& coords) {
  return {};
}

// A value in the dtype of the result.
DEVICE Result result_of_value(const Sum& value) {
  return {value.v[0], value.v[1], value.v[2], value.v[3]};
}

// The sum.
DEVICE Result result_of_state(const State& state) {
  return result_of_value(state);
}

// Not used.
DEVICE bool is_final(const State& state) {
  return false;
}

// Not used.
DEVICE State no_reads() {
  return State{};
}

// Not used.
DEVICE bool counts(const Coords& coords) {
  return true;
}

// Not used.
DEVICE Sum term_of(const Coords& coords, const Sum& value) {
  return value;
}

// Not used.
DEVICE State folded(const State& state, const Coords& coords, const Sum& value) {
  return value;
}

// The array of a result.
DEVICE Stored* result_of(const Arrays& arrays, int k) {
  return arrays.result;
}

// The kernel.
DEVICE void run(const Arrays& arrays);
extern "C" __global__ void __launch_bounds__(threads) texture_read(const float* __restrict__ texels, const float* __restrict__ operand_0, const float* __restrict__ operand_1, float* __restrict__ result) {
  run(Arrays{texels, operand_0, operand_1, result, nullptr, nullptr});
}
