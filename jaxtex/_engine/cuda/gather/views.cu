// The view of each image of samples, one in a thread: see `view` in `gather_source.py`, which generates the headers
// `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "views/config.cuh"
#include "views/traced.cuh"

DEVICE void run(const Arrays& arrays) {
  const int outer = blockIdx.x * threads + threadIdx.x;
  if (outer >= images) return;
  store_row(arrays.views + outer * numbers, view_of(arrays, outer));
}
