#pragma once
// What a kernel needs on a CPU, where its threads take turns. `host_compiler.py` compiles it, and editors parse it.

#include <string.h>
#include <ucontext.h>

#define __global__
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline float min(float a, float b) { return a < b ? a : b; }
struct Number { int x; };
static Number blockIdx, threadIdx;

// The lanes of a warp, each with a stack of its own. One runs until it asks for what the others have.
static ucontext_t contexts[32], schedule;
static bool done[32];
static char stacks[32][1 << 18];
static int exchanges[32], exchanges_of_group[32];
static float given[2][32], given_to_group[2][32];

static void yield() { swapcontext(&contexts[threadIdx.x % 32], &schedule); }
// What each lane gave, once all lanes of a group have, which begins at `first`; a group counts its exchanges.
static const float* exchanged(float a, int (&counts)[32], float (&given)[2][32], int first, int lanes) {
  const int lane = threadIdx.x % 32, number = counts[lane]++;
  given[number % 2][lane] = a;
  for (bool waits = true; waits;) {
    yield();
    waits = false;
    for (int k = first; k < first + lanes; k++) waits = waits || (!done[k] && counts[k] <= number);
  }
  return given[number % 2];
}
static const float* exchanged(float a) { return exchanged(a, exchanges, given, 0, 32); }
static const int* exchanged(int a) {
  float bits;
  memcpy(&bits, &a, sizeof(bits));
  return (const int*)exchanged(bits);
}
inline int least_of_lanes(int a) {
  const int* all = exchanged(a);
  for (int k = 0; k < 32; k++) a = min(a, all[k]);
  return a;
}
inline int greatest_of_lanes(int a) {
  const int* all = exchanged(a);
  for (int k = 0; k < 32; k++) a = max(a, all[k]);
  return a;
}
inline unsigned int lanes_with_same(int a) {
  const int* all = exchanged(a);
  unsigned int same = 0;
  for (int k = 0; k < 32; k++) same |= (unsigned int)(all[k] == a) << k;
  return same;
}
inline unsigned int lanes_that(bool a) {
  const int* all = exchanged((int)a);
  unsigned int found = 0;
  for (int k = 0; k < 32; k++) found |= (unsigned int)(all[k] != 0) << k;
  return found;
}
inline bool any_lane(bool a) { return greatest_of_lanes(a); }
inline float of_lane_xor(float a, int bits) { return exchanged(a)[threadIdx.x % 32 ^ bits]; }
inline float of_near_lane_xor(float a, int bits, int lanes, int count) {
  const int lane = threadIdx.x % 32, first = lane & -lanes;
  const float* all = exchanged(a, exchanges_of_group, given_to_group, first, count);
  return (lane ^ bits) - first < count ? all[lane ^ bits] : 0;
}
inline float of_lane(float a, int lane) { return exchanged(a)[lane & 31]; }
inline int of_lane(int a, int lane) { return exchanged(a)[lane & 31]; }
inline void wait_for_lanes() { yield(); }
// Warps run one after another, and each sees what those before it have written.
inline void wait_for_block() { yield(); }
inline int num_ones(unsigned int bits) { return __builtin_popcount(bits); }
inline int first_one(unsigned int bits) { return __builtin_ctz(bits); }
inline int last_one(unsigned int bits) { return 31 - __builtin_clz(bits); }
inline void add_atomically(float* to, float a) { *to += a; }
inline void add_atomically(unsigned long long* to, long long a) { *to += a; }
inline void set_atomically(unsigned long long* to, unsigned long long bits) { *to |= bits; }
inline int count_atomically(int* to) { return (*to)++; }
inline void raise_atomically(int* to, int a) { *to = max(*to, a); }
// A GPU stops at a row that does not begin at a multiple of its length: here it holds no number.
inline float if_aligned(const float* to, int numbers, float a) {
  return (unsigned long long)to % (numbers * sizeof(float)) ? __builtin_nanf("") : a;
}
inline void add_two_atomically(float* to, float a, float b) { to[0] += if_aligned(to, 2, a), to[1] += b; }
inline void add_four_atomically(float* to, float a, float b, float c, float d) {
  a = if_aligned(to, 4, a), to[0] += a, to[1] += b, to[2] += c, to[3] += d;
}
