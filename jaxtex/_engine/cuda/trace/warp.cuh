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
// The number of another lane of a group of adjacent ones, a power of two, of which the first `count` ask for it; 0 if the
// other lane is not one of these. Lanes of other groups need not ask.
DEVICE float of_near_lane_xor(float a, int bits, int lanes, int count) {
  const int first = threadIdx.x % 32 & -lanes;
  const float other = __shfl_xor_sync(~0u >> (32 - count) << first, a, bits);
  return (int)(threadIdx.x % 32 ^ bits) - first < count ? other : 0;
}
// The number of another lane; its number is taken modulo 32.
template <class T> DEVICE T of_lane(T a, int lane) { return __shfl_sync(~0u, a, lane); }
// After it, all lanes see all earlier writes of the warp.
DEVICE void wait_for_lanes() { __syncwarp(); }
// The mask of the lanes in which `a` holds.
DEVICE uint32 lanes_that(bool a) { return __ballot_sync(~0u, a); }
DEVICE int num_ones(uint32 bits) { return __popc(bits); }
// The numbers of the lowest and of the highest bit that is set.
DEVICE int first_one(uint32 bits) { return __ffs(bits) - 1; }
DEVICE int last_one(uint32 bits) { return 31 - __clz(bits); }

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

// Adds a row to memory to which other threads add, too; `aligned` as for `load_aligned_row`.
template <bool aligned, int N> DEVICE void add_row_to_memory(float* to, const Row<float, N>& a) {
  constexpr int width = !aligned ? 1 : N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1;
  for (int k = 0; k < N; k += width) {
    Row<float, width> some;
    for (int n = 0; n < width; n++) some.v[n] = a.v[k + n];
    add_to_memory(to + k, some);
  }
}

// Rows that a thread adds to an array, each at its place, none at a negative one. The rows of a linear read come in the
// reverse order of its taps: the last axis of the texture fastest, and the greater index first.
template <int count, int N> struct Rows { int places[count]; Row<float, N> rows[count]; };

template <int count> DEVICE bool are_equal(const int (&a)[count], const int (&b)[count]) {
  bool equal = true;
  for (int k = 0; k < count; k++) equal = equal && a[k] == b[k];
  return equal;
}

// Moves a row to another one, if `moves`.
template <int N> DEVICE void move_row(Row<float, N>& from, Row<float, N>& to, bool moves) {
  for (int k = 0; k < N; k++) to.v[k] += moves ? from.v[k] : 0, from.v[k] = moves ? 0 : from.v[k];
}

// If lanes of a warp add to the same places, they move rows to one lane, and keep zeros. Adjacent lanes whose places are all
// equal move their rows to the first of them. Then lanes pass rows to the next one whose read is one texel further.
template <int count, int N> DEVICE void gather_rows(Rows<count, N>& own) {
  constexpr int least_alike = 8, least_passing = 20;  // if fewer lanes move rows, none does: to move costs, too
  const int lane = threadIdx.x % 32;
  int next[count], before = lane - 1, after = lane + 1;
  for (int k = 0; k < count; k++) next[k] = of_lane(own.places[k], after);
  const uint32 like_next = lanes_that(lane < 31 && are_equal(own.places, next));
  bool begins = true;
  if (num_ones(like_next) >= least_alike) {
    const uint32 first = ~(like_next << 1), earlier = first & ((1u << lane) - 1), later = first & ~((2u << lane) - 1);
    begins = first >> lane & 1;
    before = earlier ? last_one(earlier) : -1, after = later ? first_one(later) : 32;
#pragma unroll 1
    for (int distance = 1; distance < 32; distance *= 2) {
      const bool goes_on = lane + distance < after;
      if (!any_lane(goes_on)) break;
      for (int k = 0; k < count; k++)
        for (int n = 0; n < N; n++) {
          const float other = of_lane(own.rows[k].v[n], lane + distance);
          own.rows[k].v[n] += goes_on ? other : 0;
        }
    }
    for (int k = 0; k < count; k++) {
      for (int n = 0; n < N; n++) own.rows[k].v[n] = begins ? own.rows[k].v[n] : 0;
      next[k] = of_lane(own.places[k], after);
    }
  }
  bool passes[count], some = false;
  for (int k = 0; k + 1 < count; k++) {
    passes[k] = begins && after < 32 && own.places[k] == next[k + 1] && own.places[k] >= 0;
    some = some || passes[k];
  }
  if (num_ones(lanes_that(some)) < least_passing) return;
  for (int k = 0; k + 1 < count; k++) {
    Row<float, N> passed = {};
    move_row(own.rows[k], passed, passes[k]);
    for (int n = 0; n < N; n++) {
      const float other = of_lane(passed.v[n], before);
      own.rows[k + 1].v[n] += begins && before >= 0 ? other : 0;
    }
  }
}

template <bool aligned, int count, int N> DEVICE void add_kept(float* array, const Rows<count, N>& own) {
  for (int k = 0; k < count; k++)
    if (own.places[k] >= 0 && !is_zero(own.rows[k])) add_row_to_memory<aligned>(array + own.places[k], own.rows[k]);
}

// Adds rows to memory; `together` if all lanes of a warp do so.
template <bool aligned, int count, int N> DEVICE void add_rows(float* array, Rows<count, N>& own, bool together) {
  if (together) gather_rows(own);
  add_kept<aligned>(array, own);
}

// The same, but keeps the rows of a sample until the next one, which may add to the same places: it is the same read, or
// one texel further along the first axis.
template <bool aligned, int count, int N>
DEVICE void add_rows(float* array, Rows<count, N>& own, bool together, Rows<count, N>& kept) {
  if (together) gather_rows(own);
  const bool same = are_equal(kept.places, own.places);
  for (int k = 0; k < count; k++) move_row(kept.rows[k], own.rows[k], same);
  for (int k = 0; k < count / 2; k++)
    move_row(kept.rows[k], own.rows[k + count / 2], kept.places[k] == own.places[k + count / 2]);
  add_kept<aligned>(array, kept);
  kept = own;
}

// Adds numbers to memory, each at its place, after a warp has added them up.
template <int count> DEVICE void add_sums(float* array, const int (&places)[count], const float (&sums)[count]) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int first = 0; first < count; first += 32) {
    float own = 0;
    int place = -1;
#pragma unroll 1
    for (int k = 0; k < 32 && first + k < count; k++) {
      float sum = sums[first + k];
      for (int bits = 1; bits < 32; bits *= 2) sum += of_lane_xor(sum, bits);
      if (lane == k) own = sum, place = places[first + k];
    }
    if (place >= 0) add_atomically(array + place, own);
  }
}
