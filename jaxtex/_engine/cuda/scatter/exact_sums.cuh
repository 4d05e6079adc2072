#pragma once
#include "trace/scalars.cuh"

// Sums of integers do not depend on the order; see `exact_sums.py`. A sum starts at 2^61, and what is added to it stays
// below 2^61 in magnitude. So the two highest bits are free. They say which infinities were added; NaN sets both.
constexpr uint64 start_of_sum = 1ull << 61, met_infinity = 1ull << 62, met_minus_infinity = 1ull << 63;
constexpr uint64 met_any = met_infinity | met_minus_infinity;

// A finite number as a multiple of 2^unit, rounded to the nearest one.
DEVICE int64 in_units(float a, int unit) {
  const uint32 bits = bits_as<uint32>(a), exponent = bits >> 23 & 255;
  const int64 digits = (bits & 0x7fffff) | (exponent > 0 ? 0x800000 : 0);
  const int shift = max((int)exponent, 1) - 150 - unit;
  const int64 found = shift >= 0 ? digits << min(shift, 38) : shift > -32 ? (digits + (1ll << (-shift - 1))) >> -shift : 0;
  return bits >> 31 ? -found : found;
}

DEVICE bool is_finite(float a) { return (bits_as<uint32>(a) >> 23 & 255) < 255; }

// The bits that an infinity or NaN sets in a sum.
DEVICE uint64 met_with(float a) { return a > 0 ? met_infinity : a < 0 ? met_minus_infinity : met_any; }

// The total of `count` sums of integers, as a number. From each sum to the next are `apart` sums.
DEVICE float number_of(const uint64* sums, int count, int64 apart, int unit) {
  uint64 met = 0;
  int64 total = 0;
  for (int k = 0; k < count; k++) {
    const uint64 sum = sums[k * apart];
    met |= sum & met_any, total += (int64)((sum & ~met_any) - start_of_sum);
  }
  if (met) return met == met_infinity ? INFINITE : met == met_minus_infinity ? -INFINITE : NOT_A_NUMBER;
  return ldexpf((float)total, unit);
}
