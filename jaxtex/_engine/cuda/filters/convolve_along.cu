// A convolution along rows of memory. A warp keeps a part of one row and its surroundings in shared memory.
//
// `convolution_kernel.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "trace/warp.cuh"
#include "convolve/config.cuh"
#include "convolve/traced.cuh"

DEVICE void run(const Arrays& arrays) {
  __shared__ float part[(steps + 2 * reach) * inner];
  const int start = blockIdx.x % chunks * steps;
  const int64 row = blockIdx.x / chunks;
  const float* const from = arrays.values + row * length * inner;
  float* const to = arrays.result + row * results * inner;
  const int first = (start - before) * inner;
  for (int i = threadIdx.x; i < (steps + 2 * reach) * inner; i += threads)
    part[i] = first + i >= 0 && first + i < length * inner ? from[first + i] : 0;
  wait_for_lanes();
  for (int i = threadIdx.x; i < steps * inner && start * inner + i < results * inner; i += threads) {
    const float* const middle = part + i + reach * inner;
    float sum = weight(0) * middle[0];
#pragma unroll
    for (int k = 1; k <= reach; k++) sum += weight(k) * (middle[-k * inner] + middle[k * inner]);
    to[start * inner + i] = sum;
  }
}
