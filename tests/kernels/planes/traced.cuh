#pragma once
// What a thread of one kernel computes, by plane_source.py.
#include "trace/scalars.cuh"
#include "planes/config.cuh"
#include "samples/position.cuh"

// What the kernel reads and writes.
struct Arrays {
  const float* texels;
  const float* operand_0;
  const float* operand_1;
  const float* operand_2;
  float* result;
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
  const int v0 = remainder_of(at.x, 40);
  const int v1 = quotient(at.x, 40);
  const Row<float, 1> v2 = load_row<1>(arrays.operand_0 + v0);
  const Row<float, 1> v3 = load_row<1>(arrays.operand_1 + v1);
  const int v4 = wrapped_mul(at.outer, 960);
  const int v5 = wrapped_mul(v1, 40);
  const int v6 = wrapped_add(v4, v5);
  const int v7 = wrapped_add(v6, v0);
  const Row<float, 2> v8 = load_aligned_row<2>(arrays.operand_2 + ((int64)v7 * 2ll + (int64)0 * 1ll));
  const bool v9 = v8.v[0] == v8.v[0];
  const float v10 = converted<float, int>((-1));
  const float v11 = v9 ? v8.v[0] : v10;
  const float v12 = v11 + 1.0e+00f;
  const float v13 = v12 * 2.4e+01f;
  const float v14 = v13 + 0.0e+00f;
  const bool v15 = v8.v[1] == v8.v[1];
  const float v16 = v15 ? v8.v[1] : v10;
  const float v17 = v16 + 1.0e+00f;
  const float v18 = v17 * 1.6e+01f;
  const float v19 = v18 + 0.0e+00f;
  return {v19, v14};
}

// Where a result lies.
DEVICE Place place_of(Position at, int part) {
  const int v0 = remainder_of(at.x, 40);
  const int v1 = quotient(at.x, 40);
  const int v2 = wrapped_mul(at.outer, 960);
  const int v3 = wrapped_mul(v1, 40);
  const int v4 = wrapped_add(v2, v3);
  const int v5 = wrapped_add(v4, v0);
  return {v5, part};
}

// A read: its taps, weights and texels along the axes (y, x).
DEVICE Read read_at(const Arrays& arrays, Position at, int part, const Coords& coords) {
  const int v0 = remainder_of(at.x, 40);
  const int v1 = quotient(at.x, 40);
  const bool v2 = coords.c0 == coords.c0;
  const float v3 = converted<float, int>(0);
  const float v4 = v2 ? coords.c0 : v3;
  const float v5 = v4 - 5.0e-01f;
  const float v6 = floor(v5);
  const int v7 = converted<int, float>(v6);
  const int v8 = minimum(v7, 32);
  const float v9 = converted<float, int>(v8);
  const float v10 = v5 - v9;
  const float v11 = v5 - v6;
  const float v12 = v10 - 5.0e-01f;
  const float v13 = fabs(v12);
  const bool v14 = v13 < 6.25e-01f;
  const bool v15 = v11 >= 0.0e+00f;
  const float v16 = v15 ? v11 : v3;
  const float v17 = v14 ? v10 : v16;
  const float v18 = v17 * (-1.0e+00f);
  const float v19 = v18 + 1.0e+00f;
  const int v20 = wrapped_add(v8, 1);
  const uint32 v21 = converted<uint32, int>(v8);
  const bool v22 = v21 < 32u;
  const int v23 = v22 ? v8 : 0;
  const uint32 v24 = converted<uint32, int>(v20);
  const bool v25 = v24 < 32u;
  const int v26 = v25 ? v20 : 0;
  const bool v27 = coords.c1 == coords.c1;
  const float v28 = v27 ? coords.c1 : v3;
  const float v29 = v28 - 5.0e-01f;
  const float v30 = floor(v29);
  const int v31 = converted<int, float>(v30);
  const int v32 = minimum(v31, 48);
  const float v33 = converted<float, int>(v32);
  const float v34 = v29 - v33;
  const float v35 = v29 - v30;
  const float v36 = v34 - 5.0e-01f;
  const float v37 = fabs(v36);
  const bool v38 = v37 < 6.25e-01f;
  const bool v39 = v35 >= 0.0e+00f;
  const float v40 = v39 ? v35 : v3;
  const float v41 = v38 ? v34 : v40;
  const float v42 = v41 * (-1.0e+00f);
  const float v43 = v42 + 1.0e+00f;
  const int v44 = wrapped_add(v32, 1);
  const uint32 v45 = converted<uint32, int>(v32);
  const bool v46 = v45 < 48u;
  const int v47 = v46 ? v32 : 0;
  const uint32 v48 = converted<uint32, int>(v44);
  const bool v49 = v48 < 48u;
  const int v50 = v49 ? v44 : 0;
  const int v51 = wrapped_mul(v23, 48);
  const int v52 = wrapped_add(v51, v47);
  const bool v53 = v22 & v46;
  const Row<float, 1> v54 = load_row<1>(arrays.texels + ((int64)0 * 1536ll + (int64)v52 * 1ll + (int64)part * 1ll), v53);
  const float v55 = v54.v[0] * v43;
  const int v56 = wrapped_add(v51, v50);
  const bool v57 = v22 & v49;
  const Row<float, 1> v58 = load_row<1>(arrays.texels + ((int64)0 * 1536ll + (int64)v56 * 1ll + (int64)part * 1ll), v57);
  const float v59 = v58.v[0] * v41;
  const float v60 = v55 + v59;
  const float v61 = v60 * v19;
  const int v62 = wrapped_mul(v26, 48);
  const int v63 = wrapped_add(v62, v47);
  const bool v64 = v25 & v46;
  const Row<float, 1> v65 = load_row<1>(arrays.texels + ((int64)0 * 1536ll + (int64)v63 * 1ll + (int64)part * 1ll), v64);
  const float v66 = v65.v[0] * v43;
  const int v67 = wrapped_add(v62, v50);
  const bool v68 = v25 & v49;
  const Row<float, 1> v69 = load_row<1>(arrays.texels + ((int64)0 * 1536ll + (int64)v67 * 1ll + (int64)part * 1ll), v68);
  const float v70 = v69.v[0] * v41;
  const float v71 = v66 + v70;
  const float v72 = v71 * v17;
  const float v73 = v61 + v72;
  return {{v73}, false};
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
  return {value.v[0]};
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
extern "C" __global__ void __launch_bounds__(threads) texture_read_planes(const float* __restrict__ texels, const float* __restrict__ operand_0, const float* __restrict__ operand_1, const float* __restrict__ operand_2, float* __restrict__ result) {
  run(Arrays{texels, operand_0, operand_1, operand_2, result});
}
