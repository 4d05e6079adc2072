// A convolution across rows of memory. A thread computes some outputs of one column, one after the other.
extern "C" __global__ void __launch_bounds__(@threads@) @name@(const float* __restrict__ values, float* __restrict__ out) {
  constexpr float weights[] = {@weights@};
  const int64 number = (int64)blockIdx.x * @threads@ + threadIdx.x;
  const int column = number % @inner@, start = number / @inner@ % @chunks@ * @steps@;
  const int64 outer = number / ((int64)@inner@ * @chunks@);
  if (outer >= @outer@) return;
  const float* const from = values + outer * @length@ * @inner@ + column;
  float* const to = out + outer * @results@ * @inner@ + column;
  float sums[@steps@] = {};
#pragma unroll
  for (int j = 0; j < @steps@ + 2 * @reach@; j++) {
    const int place = start + j - @before@;
    const float value = place >= 0 && place < @length@ ? from[(int64)place * @inner@] : 0;
#pragma unroll
    for (int s = 0; s < @steps@; s++) {
      const int k = j - s < @reach@ ? @reach@ - j + s : j - s - @reach@;
      if (j >= s && k <= @reach@) sums[s] += weights[k] * value;
    }
  }
#pragma unroll
  for (int s = 0; s < @steps@; s++)
    if (start + s < @results@) to[(int64)(start + s) * @inner@] = sums[s];
}
