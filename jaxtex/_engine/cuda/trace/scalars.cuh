#pragma once
// Arithmetic with JAX's results: integers wrap on overflow, division by zero has a result, a maximum with NaN is NaN.
//
// NVRTC compiles this file for GPUs. Any C++17 compiler compiles it for CPUs, where tests compare it with JAX.

#ifdef __CUDACC__
#define DEVICE __device__ __forceinline__
#else
#include <math.h>
#include <string.h>
#define DEVICE inline
#endif

typedef unsigned char uint8;
typedef signed char int8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef long long int64;
typedef unsigned long long uint64;

// 16-bit floats as they are stored; all arithmetic is done in float.
struct float16 { uint16 bits; };
struct bfloat16 { uint16 bits; };

template <class To, class From>
DEVICE To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "bits_as keeps all bits");
  To result;
  memcpy(&result, &value, sizeof(To));
  return result;
}

// Tables of constants.
#ifdef __CUDACC__
#define TABLE __device__ const
template <class T> DEVICE T element_of(const T* table, int index) { return __ldg(table + index); }
#else
#define TABLE static const
template <class T> DEVICE T element_of(const T* table, int index) { return table[index]; }
#endif

#define INFINITE bits_as<float>(0x7f800000)
#define NOT_A_NUMBER bits_as<float>(0x7fc00000)

// Integers. Arithmetic uses the unsigned type of equal size, in which overflow is defined.

template <class T> struct Unsigned { typedef T type; };
template <> struct Unsigned<int> { typedef uint32 type; };
template <> struct Unsigned<int64> { typedef uint64 type; };
template <class T> struct Signed { typedef T type; };
template <> struct Signed<uint32> { typedef int type; };
template <> struct Signed<uint64> { typedef int64 type; };

template <class T> DEVICE T wrapped_add(T a, T b) {
  typedef typename Unsigned<T>::type U;
  return T(U(a) + U(b));
}
template <class T> DEVICE T wrapped_sub(T a, T b) {
  typedef typename Unsigned<T>::type U;
  return T(U(a) - U(b));
}
template <class T> DEVICE T wrapped_mul(T a, T b) {
  typedef typename Unsigned<T>::type U;
  return T(U(a) * U(b));
}
template <class T> DEVICE T wrapped_neg(T a) { return wrapped_sub(T(0), a); }
template <class T> DEVICE T wrapped_abs(T a) { return a < T(0) ? wrapped_neg(a) : a; }

// Quotients, rounded toward zero. A division by zero gives -1 (all bits set), and the dividend as remainder.
template <class T> DEVICE T quotient(T a, T b) {
  return b == T(0) ? T(-1) : T(-1) < T(0) && b == T(-1) ? wrapped_neg(a) : a / b;
}
template <class T> DEVICE T remainder_of(T a, T b) {
  return b == T(0) ? a : T(-1) < T(0) && b == T(-1) ? T(0) : a % b;
}
DEVICE float remainder_of(float a, float b) { return fmodf(a, b); }
DEVICE double remainder_of(double a, double b) { return fmod(a, b); }

// Shifts by the number of bits or more push all bits out. An arithmetic shift copies the highest bit, even that of an
// unsigned number.
template <class T> DEVICE T shifted_left(T a, T count) {
  typedef typename Unsigned<T>::type U;
  return U(count) >= sizeof(T) * 8 ? T(0) : T(U(a) << U(count));
}
template <class T> DEVICE T shifted_right(T a, T count) {
  typedef typename Unsigned<T>::type U;
  typedef typename Signed<T>::type S;
  return T(S(a) >> (U(count) >= sizeof(T) * 8 ? int(sizeof(T) * 8 - 1) : int(count)));
}
template <class T> DEVICE T shifted_right_logical(T a, T count) {
  typedef typename Unsigned<T>::type U;
  return U(count) >= sizeof(T) * 8 ? T(0) : T(U(a) >> U(count));
}

// The number of set bits, and of leading zeros.
#ifdef __CUDACC__
DEVICE int num_set(uint64 bits) { return __popcll(bits); }
DEVICE int num_unset_above(uint64 bits) { return __clzll(bits); }
#else
DEVICE int num_set(uint64 bits) { return __builtin_popcountll(bits); }
DEVICE int num_unset_above(uint64 bits) { return bits ? __builtin_clzll(bits) : 64; }
#endif
template <class T> DEVICE uint64 bits_of_integer(T a) {
  constexpr int unused = 64 - 8 * int(sizeof(T));
  return uint64(a) << unused >> unused;
}
template <class T> DEVICE T population_count(T a) { return T(num_set(bits_of_integer(a))); }
template <class T> DEVICE T leading_zeros(T a) {
  return T(num_unset_above(bits_of_integer(a)) - (64 - 8 * int(sizeof(T))));
}

// The maximum and minimum of floats are NaN if one of them is, and -0 is less than 0.
template <class T> DEVICE T maximum(T a, T b) { return a > b ? a : b; }
template <class T> DEVICE T minimum(T a, T b) { return a < b ? a : b; }
template <class T> DEVICE T maximum_of_floats(T a, T b) {
  return a != a || a > b ? a : a == b && signbit(b) ? a : b;
}
template <class T> DEVICE T minimum_of_floats(T a, T b) {
  return a != a || a < b ? a : a == b && signbit(a) ? a : b;
}
DEVICE double maximum(double a, double b) { return maximum_of_floats(a, b); }
DEVICE double minimum(double a, double b) { return minimum_of_floats(a, b); }
#ifdef __CUDACC__
DEVICE float maximum(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
DEVICE float minimum(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
#else
DEVICE float maximum(float a, float b) { return maximum_of_floats(a, b); }
DEVICE float minimum(float a, float b) { return minimum_of_floats(a, b); }
#endif

// Integers in the order of all floats: -0 is less than 0, and NaN lies beyond infinity, on the side of its sign.
DEVICE int ordered(float a) {
  const int bits = bits_as<int>(a);
  return bits < 0 ? bits ^ 0x7fffffff : bits;
}
DEVICE int64 ordered(double a) {
  const int64 bits = bits_as<int64>(a);
  return bits < 0 ? bits ^ 0x7fffffffffffffffll : bits;
}

// Sums and products that are rounded separately: no compiler fuses them.
#ifdef __CUDACC__
DEVICE float rounded_add(float a, float b) { return __fadd_rn(a, b); }
DEVICE float rounded_sub(float a, float b) { return __fsub_rn(a, b); }
DEVICE float rounded_mul(float a, float b) { return __fmul_rn(a, b); }
#else
DEVICE float rounded(volatile float a) { return a; }
DEVICE float rounded_add(float a, float b) { return rounded(a + b); }
DEVICE float rounded_sub(float a, float b) { return rounded(a - b); }
DEVICE float rounded_mul(float a, float b) { return rounded(a * b); }
#endif

// Quotients and reciprocal square roots, to two units in the last place.
#ifdef __CUDACC__
DEVICE float divided(float a, float b) {
  float result;
  asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
DEVICE float reciprocal_root(float a) { return rsqrtf(a); }
#else
DEVICE float divided(float a, float b) { return a / b; }
DEVICE float reciprocal_root(float a) { return 1 / sqrtf(a); }
#endif
DEVICE double divided(double a, double b) { return a / b; }
DEVICE double reciprocal_root(double a) { return 1 / sqrt(a); }

// Powers, to two units in the last place, six near the limits of float: the logarithm of the base as a sum of two floats,
// by the series of atanh, then 2 to the power of its product. Half as many instructions as `powf`, which computes the
// cases outside its range.
#ifdef __CUDACC__
static __device__ __noinline__ float any_power(float a, float b) { return powf(a, b); }
DEVICE float power(float a, float b) {
  const uint32 bits = bits_as<uint32>(a);
  const int exponent = int(bits - 0x3f3504f3u) >> 23;
  const float m = bits_as<float>(bits - (uint32(exponent) << 23)), less = m - 1.0f, more = m + 1.0f;
  float over;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(over) : "f"(more));
  const float s = rounded_mul(less, over), rest = fmaf(-s, m - (more - 1.0f), fmaf(-s, more, less)) * over, q = s * s;
  const float series = fmaf(fmaf(fmaf(q, 0.11665937f, 0.14275381f), q, 0.20000061f), q, 0.33333334f) * q;
  // 2 / log(2) as a sum of two floats.
  const float high = rounded_mul(2.88539f, s), part = fmaf(3.851926e-08f, s, fmaf(2.88539f, s, -high));
  const float low = fmaf(2.88539f, fmaf(s, series, rest), part), whole = float(exponent), sum = whole + high;
  const float y = rounded_mul(b, sum), below = fmaf(b, (whole - sum) + high + low, fmaf(b, sum, -y));
  const float shifted = y + 12582912.0f;  // the nearest integer, in the low bits
  float fine;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(fine) : "f"((y - (shifted - 12582912.0f)) + below));
  if (bits - 0x00800000u < 0x7f000000u && fabs(y) < 125.0f)
    return bits_as<float>(bits_as<uint32>(fine) + (bits_as<uint32>(shifted) << 23));
  return any_power(a, b);
}
#else
DEVICE float power(float a, float b) { return powf(a, b); }
#endif
DEVICE double power(double a, double b) { return pow(a, b); }

// What replaces functions that Python declares as an `instruction`. `saturated` clips to [0, 1], NaN to 0.
// `flushed_product` flushes subnormal factors and products to zeros of their signs.
#ifdef __CUDACC__
DEVICE float saturated(float a) { return __saturatef(a); }
DEVICE float flushed_product(float a, float b) {
  float result;
  asm("mul.ftz.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
#else
DEVICE float saturated(float a) { return a > 0 ? a < 1 ? a : 1 : 0; }
DEVICE float flushed_product(float a, float b) {
  const double product = double(fabs(a) < 0x1p-126f ? copysign(0.0f, a) : a) * b;
  return float(fabs(product) < 0x1p-126 ? copysign(0.0, product) : product);
}
#endif
DEVICE double saturated(double a) { return a > 0 ? a < 1 ? a : 1 : 0; }
DEVICE int scaled_product(int a, int b, int more, int shift) { return int(((int64)a * b + more) >> shift); }
DEVICE int shifted_pair(int high, int low, int count) {
  return int(int64((uint64)uint32(high) << 32 | uint32(low)) >> count);
}

template <class T> DEVICE T sign_of(T a) { return T((a > T(0)) - (a < T(0))); }
DEVICE float sign_of(float a) { return a > 0 ? 1.0f : a < 0 ? -1.0f : a; }
DEVICE double sign_of(double a) { return a > 0 ? 1.0 : a < 0 ? -1.0 : a; }

template <class T> DEVICE bool is_finite(T a) { return a - a == T(0); }
DEVICE float logistic(float a) { return divided(1.0f, 1.0f + expf(-a)); }
DEVICE double logistic(double a) { return 1.0 / (1.0 + exp(-a)); }

// Conversions. A float out of range becomes the nearest integer, and NaN becomes zero.

template <class To, class From> struct Converted {
  static DEVICE To of(From a) { return To(a); }
};

template <class T> DEVICE T clamped_to(double a, T least, T most) {
  return a != a ? T(0) : a <= double(least) ? least : a >= double(most) ? most : T(a);
}
#ifdef __CUDACC__
template <> struct Converted<int, float> { static DEVICE int of(float a) { return __float2int_rz(a); } };
template <> struct Converted<uint32, float> { static DEVICE uint32 of(float a) { return __float2uint_rz(a); } };
template <> struct Converted<int, double> { static DEVICE int of(double a) { return __double2int_rz(a); } };
#else
template <> struct Converted<int, float> {
  static DEVICE int of(float a) { return clamped_to<int>(a, -2147483647 - 1, 2147483647); }
};
template <> struct Converted<uint32, float> {
  static DEVICE uint32 of(float a) { return clamped_to<uint32>(a, 0u, 4294967295u); }
};
template <> struct Converted<int, double> {
  static DEVICE int of(double a) { return clamped_to<int>(a, -2147483647 - 1, 2147483647); }
};
#endif

// Conversions to integers of fewer bits, through int.
template <class T> DEVICE T narrowed(float a, int least, int most) {
  const int number = Converted<int, float>::of(a);
  return T(number < least ? least : number > most ? most : number);
}
template <> struct Converted<int8, float> { static DEVICE int8 of(float a) { return narrowed<int8>(a, -128, 127); } };
template <> struct Converted<uint8, float> { static DEVICE uint8 of(float a) { return narrowed<uint8>(a, 0, 255); } };
template <> struct Converted<short, float> {
  static DEVICE short of(float a) { return narrowed<short>(a, -32768, 32767); }
};
template <> struct Converted<uint16, float> {
  static DEVICE uint16 of(float a) { return narrowed<uint16>(a, 0, 65535); }
};

template <> struct Converted<float, bfloat16> {
  static DEVICE float of(bfloat16 a) { return bits_as<float>(uint32(a.bits) << 16); }
};
template <> struct Converted<bfloat16, float> {
  static DEVICE bfloat16 of(float a) {
#if __CUDA_ARCH__ >= 900
    bfloat16 result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(a));
    return result;
#else
    const uint32 bits = bits_as<uint32>(a);
    const uint32 rounded = a != a ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u);
    return bfloat16{uint16(rounded >> 16)};
#endif
  }
};
#ifdef __CUDACC__
template <> struct Converted<float, float16> {
  static DEVICE float of(float16 a) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(a.bits));
    return result;
  }
};
template <> struct Converted<float16, float> {
  static DEVICE float16 of(float a) {
    float16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(a));
    return result;
  }
};
#else
template <> struct Converted<float, float16> {
  static DEVICE float of(float16 a) {
    const int exponent = (a.bits >> 10) & 31, fraction = a.bits & 1023;
    const float magnitude = exponent == 31 ? (fraction ? NOT_A_NUMBER : INFINITE)
                                           : ldexpf(float(exponent ? fraction | 1024 : fraction), (exponent ? exponent : 1) - 25);
    return a.bits & 0x8000 ? -magnitude : magnitude;
  }
};
template <> struct Converted<float16, float> {
  static DEVICE float16 of(float a) {
    const uint16 sign = signbit(a) ? 0x8000 : 0;
    if (a != a) return float16{uint16(sign | 0x7e00)};
    if (a == 0) return float16{sign};
    int exponent;
    frexpf(a, &exponent);
    exponent = exponent < -13 ? -13 : exponent;  // below it, floats have the spacing of subnormals
    const float steps = rintf(ldexpf(fabsf(a), 11 - exponent));  // in units of the last place, ties to even
    if (!(ldexpf(steps, exponent - 11) < 65520.0f)) return float16{uint16(sign | 0x7c00)};
    return float16{uint16(sign | (uint16(exponent + 13) * 1024 + uint16(steps)))};
  }
};
#endif

template <class To, class From> DEVICE To converted(From a) { return Converted<To, From>::of(a); }

// Adjacent elements of an array; `load_row` loads them from an array that the kernel does not write. A row that is not
// `inside` is zeros, and nothing is loaded.

template <class T, int N> struct Row { T v[N]; };

template <int N, class T> DEVICE Row<T, N> load_row(const T* first, bool inside = true) {
  Row<T, N> row;
  for (int k = 0; k < N; k++) row.v[k] = inside ? first[k] : T{};
  return row;
}
#ifdef __CUDACC__
// A place in memory that the compiler computes once, and not anew for each row that is loaded from near it.
template <class T> DEVICE const T* kept(const T* place) {
  uint64 address = __cvta_generic_to_global(place);
  asm("" : "+l"(address));
  return (const T*)__cvta_global_to_generic(address);
}
template <class Word> DEVICE Word load_word(const void* from, bool inside) {
  Word word = {};
  if (inside) word = __ldg((const Word*)from);
  return word;
}
// Loads a row by as few instructions as possible: `first` is aligned to a row, or to 16 bytes if a row has more.
template <int N, class T> DEVICE Row<T, N> load_aligned_row(const T* first, bool inside = true) {
  Row<T, N> row;
  constexpr int bytes = N * sizeof(T);
  if constexpr (bytes > 16 && bytes % 16 == 0) {
    constexpr int count = 16 / sizeof(T);
    for (int k = 0; k < N; k += count) {
      const Row<T, count> some = load_aligned_row<count>(first + k, inside);
      for (int n = 0; n < count; n++) row.v[k + n] = some.v[n];
    }
  } else if constexpr (bytes == 16) {
    row = bits_as<Row<T, N>>(load_word<int4>(first, inside));
  } else if constexpr (bytes == 8) {
    row = bits_as<Row<T, N>>(load_word<int2>(first, inside));
  } else if constexpr (bytes == 4) {
    row = bits_as<Row<T, N>>(load_word<int>(first, inside));
  } else if constexpr (bytes == 2) {
    row = bits_as<Row<T, N>>(load_word<uint16>(first, inside));
  } else if constexpr (bytes == 1) {
    row = bits_as<Row<T, N>>(load_word<uint8>(first, inside));
  } else {
    row = load_row<N>(first, inside);
  }
  return row;
}
// Loads three bytes, and another one, by the one or two words of 32 bits that hold them.
DEVICE Row<uint8, 4> load_three_bytes(const uint8* first, bool inside = true) {
  const uint64 place = (uint64)first;
  const uint32* words = (const uint32*)(place & ~3ull);
  const uint32 low = load_word<uint32>(words, inside), high = load_word<uint32>(words + 1, inside && place & 2);
  return bits_as<Row<uint8, 4>>(__funnelshift_r(low, high, 8 * (uint32)place));
}
// Loads three numbers of 32 bits in two loads: one of the two pairs begins at a multiple of its length.
template <int N, class T> DEVICE Row<T, N> load_row_by_pair(const T* first, bool inside = true) {
  if constexpr (N == 3 && sizeof(T) == 1) {
    const Row<uint8, 4> row = load_three_bytes((const uint8*)first, inside);
    return {{(T)row.v[0], (T)row.v[1], (T)row.v[2]}};
  } else if constexpr (N == 3 && sizeof(T) == 4) {
    const bool odd = (uint64)first & 4;
    const int2 pair = load_word<int2>(first + odd, inside);
    const int other = load_word<int>(first + (odd ? 0 : 2), inside);
    return {{bits_as<T>(odd ? other : pair.x), bits_as<T>(odd ? pair.x : pair.y), bits_as<T>(odd ? pair.y : other)}};
  } else {
    return load_row<N>(first, inside);
  }
}
// Byte K of a row that was loaded by words, divided by 2^SHIFT: it becomes the low bits of a float near 2^(23 - SHIFT),
// from which that power is subtracted.
template <int K, int SHIFT, int N> DEVICE float float_of_byte(const Row<uint8, N>& row) {
  uint32 word = 0;
  constexpr int first = K & ~3;
  for (int k = first; k < N && k < first + 4; k++) word |= (uint32)row.v[k] << 8 * (k - first);
  constexpr uint32 near = (uint32)(150 - SHIFT) << 23;
  return bits_as<float>(__byte_perm(word, near, 0x7650 + K % 4)) - bits_as<float>(near);
}
#else
template <int K, int SHIFT, int N> DEVICE float float_of_byte(const Row<uint8, N>& row) {
  return float(row.v[K]) * (1.0f / (1 << SHIFT));
}
template <class T> DEVICE const T* kept(const T* place) { return place; }
template <int N, class T> DEVICE Row<T, N> load_aligned_row(const T* first, bool inside = true) {
  return load_row<N>(first, inside);
}
DEVICE Row<uint8, 4> load_three_bytes(const uint8* first, bool inside = true) {
  return inside ? Row<uint8, 4>{{first[0], first[1], first[2]}} : Row<uint8, 4>{};
}
template <int N, class T> DEVICE Row<T, N> load_row_by_pair(const T* first, bool inside = true) {
  return load_row<N>(first, inside);
}
#endif

// Elements in three arrays, one after the other. A row lies in one of the arrays.
template <class T> struct WithHalo {
  T *before, *own, *after;
  int64 first, last;  // the numbers of the first element of `own`, and of `after`

  DEVICE T* operator+(int64 k) const { return k < first ? before + k : k < last ? own + (k - first) : after + (k - last); }
};

// Stores of adjacent elements.
template <int N, class T> DEVICE void store_row(T* first, const Row<T, N>& row) {
  for (int k = 0; k < N; k++) first[k] = row.v[k];
}
#ifdef __CUDACC__
template <int N, class T> DEVICE void store_aligned_row(T* first, const Row<T, N>& row) {
  constexpr int bytes = N * sizeof(T);
  if constexpr (bytes > 16 && bytes % 16 == 0) {
    constexpr int count = 16 / sizeof(T);
    for (int k = 0; k < N; k += count) {
      Row<T, count> some;
      for (int n = 0; n < count; n++) some.v[n] = row.v[k + n];
      store_aligned_row(first + k, some);
    }
  } else if constexpr (bytes == 16) {
    *(int4*)first = bits_as<int4>(row);
  } else if constexpr (bytes == 8) {
    *(int2*)first = bits_as<int2>(row);
  } else if constexpr (bytes == 4) {
    *(int*)first = bits_as<int>(row);
  } else if constexpr (bytes == 2) {
    *(uint16*)first = bits_as<uint16>(row);
  } else {
    store_row(first, row);
  }
}
#else
template <int N, class T> DEVICE void store_aligned_row(T* first, const Row<T, N>& row) { store_row(first, row); }
#endif
