// A convolution along rows of memory. A warp keeps a part of one row, and what lies around it.
extern "C" __global__ void __launch_bounds__(32) @name@(const float* __restrict__ values, float* __restrict__ out) {
  constexpr float weights[] = {@weights@};
  __shared__ float part[(@steps@ + 2 * @reach@) * @inner@];
  const int start = blockIdx.x % @chunks@ * @steps@;
  const int64 outer = blockIdx.x / @chunks@;
  const float* const from = values + outer * @length@ * @inner@;
  float* const to = out + outer * @results@ * @inner@;
  const int first = (start - @before@) * @inner@;
  for (int i = threadIdx.x; i < (@steps@ + 2 * @reach@) * @inner@; i += 32)
    part[i] = first + i >= 0 && first + i < @length@ * @inner@ ? from[first + i] : 0;
  wait_for_lanes();
  for (int i = threadIdx.x; i < @steps@ * @inner@ && start * @inner@ + i < @results@ * @inner@; i += 32) {
    const float* const middle = part + i + @reach@ * @inner@;
    float sum = weights[0] * middle[0];
#pragma unroll
    for (int k = 1; k <= @reach@; k++) sum += weights[k] * (middle[-k * @inner@] + middle[k * @inner@]);
    to[start * @inner@ + i] = sum;
  }
}
