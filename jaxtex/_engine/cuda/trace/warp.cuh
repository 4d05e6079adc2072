#pragma once
// Operations of the lanes (threads) of a warp, and additions to memory.

#include "trace/scalars.cuh"

#ifdef __CUDACC__

DEVICE int least_of_lanes(int a) { return __reduce_min_sync(~0u, a); }
DEVICE int greatest_of_lanes(int a) { return __reduce_max_sync(~0u, a); }
DEVICE bool any_lane(bool a) { return __any_sync(~0u, a); }
// The mask of the lanes whose number equals this lane's.
DEVICE uint32 lanes_with_same(int a) { return __match_any_sync(~0u, a); }
DEVICE float of_lane_xor(float a, int bits) { return __shfl_xor_sync(~0u, a, bits); }
// After it, all lanes see all earlier writes of the warp.
DEVICE void wait_for_lanes() { __syncwarp(); }
// The mask of the lanes in which `a` holds.
DEVICE uint32 lanes_that(bool a) { return __ballot_sync(~0u, a); }
DEVICE int num_ones(uint32 bits) { return __popc(bits); }

DEVICE void add_atomically(float* to, float a) {
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "f"(a) : "memory");
}

DEVICE void add_atomically(uint64* to, int64 a) {
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(a) : "memory");
}
DEVICE void set_atomically(uint64* to, uint64 bits) {
  asm volatile("red.global.or.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(bits) : "memory");
}

// Adds one, and returns the number before.
DEVICE int count_atomically(int* to) { return atomicAdd(to, 1); }
// Sets a number to `a` if `a` is greater.
DEVICE void raise_atomically(int* to, int a) { atomicMax(to, a); }

#if __CUDA_ARCH__ >= 900
DEVICE void add_two_atomically(float* to, float a, float b) {
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "f"(a), "f"(b) : "memory");
}
DEVICE void add_four_atomically(float* to, float a, float b, float c, float d) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(a), "f"(b),
               "f"(c), "f"(d)
               : "memory");
}
#else
DEVICE void add_two_atomically(float* to, float a, float b) { add_atomically(to, a), add_atomically(to + 1, b); }
DEVICE void add_four_atomically(float* to, float a, float b, float c, float d) {
  add_two_atomically(to, a, b), add_two_atomically(to + 2, c, d);
}
#endif

#endif

// Additions to rows of memory to which other threads add, too. Rows of two and four are aligned.
DEVICE void add_to_memory(float* to, const Row<float, 1>& a) { add_atomically(to, a.v[0]); }
DEVICE void add_to_memory(float* to, const Row<float, 2>& a) { add_two_atomically(to, a.v[0], a.v[1]); }
DEVICE void add_to_memory(float* to, const Row<float, 4>& a) {
  add_four_atomically(to, a.v[0], a.v[1], a.v[2], a.v[3]);
}

// Exchanges the second number of a lane in the lower half of a warp for the first number of a lane in the upper half. If each
// half holds two numbers of its own row, each number then belongs to both rows. The second exchange undoes the first.
template <class T> DEVICE void exchange_halves(T& a, T& b) {
  constexpr int words = (sizeof(T) + 3) / 4;
  const bool lower = threadIdx.x % 32 < 16;
  float of_a[words] = {}, of_b[words] = {};
  memcpy(of_a, &a, sizeof(T)), memcpy(of_b, &b, sizeof(T));
#pragma unroll
  for (int k = 0; k < words; k++) {
    const float other = of_lane_xor(lower ? of_b[k] : of_a[k], 16);
    of_a[k] = lower ? of_a[k] : other, of_b[k] = lower ? other : of_b[k];
  }
  memcpy(&a, of_a, sizeof(T)), memcpy(&b, of_b, sizeof(T));
}

struct alignas(16) Four { float v[4]; };
struct alignas(8) Two { float v[2]; };

DEVICE void store_four(float* to, float a) { *(Four*)to = {{a, a, a, a}}; }

// Rows of shared memory; rows of two or of a multiple of four are aligned.
template <int N> DEVICE Row<float, N> load_shared(const float* from) {
  Row<float, N> row;
  if constexpr (N % 4 == 0) {
    for (int k = 0; k < N; k += 4) {
      const Four four = *(const Four*)(from + k);
      for (int n = 0; n < 4; n++) row.v[k + n] = four.v[n];
    }
  } else if constexpr (N == 2) {
    const Two two = *(const Two*)from;
    row.v[0] = two.v[0], row.v[1] = two.v[1];
  } else {
    for (int k = 0; k < N; k++) row.v[k] = from[k];
  }
  return row;
}

template <int N> DEVICE void store_shared(float* to, const Row<float, N>& row) {
  if constexpr (N % 4 == 0) {
    for (int k = 0; k < N; k += 4) *(Four*)(to + k) = {{row.v[k], row.v[k + 1], row.v[k + 2], row.v[k + 3]}};
  } else if constexpr (N == 2) {
    *(Two*)to = {{row.v[0], row.v[1]}};
  } else {
    for (int k = 0; k < N; k++) to[k] = row.v[k];
  }
}

template <int N> DEVICE void add_to_shared(float* to, const Row<float, N>& a) {
  Row<float, N> row = load_shared<N>(to);
  for (int k = 0; k < N; k++) row.v[k] += a.v[k];
  store_shared(to, row);
}

template <int N> DEVICE bool is_zero(const Row<float, N>& a) {
  bool zero = true;
  for (int k = 0; k < N; k++) zero = zero && a.v[k] == 0;
  return zero;
}
