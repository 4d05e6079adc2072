// A convolution across rows of memory. A thread computes `steps` successive outputs of one column.
//
// `convolution_kernel.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "convolve/config.cuh"
#include "convolve/traced.cuh"

DEVICE void run(const Arrays& arrays) {
  const int64 number = (int64)blockIdx.x * threads + threadIdx.x;
  const int column = number % inner, start = number / inner % chunks * steps;
  const int64 row = number / ((int64)inner * chunks);
  if (row >= outer) return;
  const float* const from = arrays.values + row * length * inner + column;
  float* const to = arrays.result + row * results * inner + column;
  float sums[steps] = {};
#pragma unroll
  for (int j = 0; j < steps + 2 * reach; j++) {
    const int place = start + j - before;
    const float value = place >= 0 && place < length ? from[(int64)place * inner] : 0;
#pragma unroll
    for (int s = 0; s < steps; s++) {
      const int k = j - s < reach ? reach - j + s : j - s - reach;
      if (j >= s && k <= reach) sums[s] += weight(k) * value;
    }
  }
#pragma unroll
  for (int s = 0; s < steps; s++)
    if (start + s < results) to[(int64)(start + s) * inner] = sums[s];
}
