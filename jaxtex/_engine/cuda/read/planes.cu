// A read of images whose channels are planes. A block copies some planes of an image to shared memory, and reads them
// at samples of the image. A thread takes `steps` samples at a time, each in all of these planes.
//
// `plane_source.py` generates the headers `config.cuh` and `traced.cuh`. The kernel is at the end of the latter.

#include "trace/scalars.cuh"
#include "samples/position.cuh"
#include "planes/config.cuh"
#include "planes/traced.cuh"

#ifdef __CUDACC__
// Copies adjacent elements to shared memory. All threads of a block take part.
template <int count, class T> DEVICE const T* shared_copy(const T* from) {
  extern __shared__ int4 reserved[];
  constexpr int words = count * sizeof(T) / 16;
  if constexpr (count * sizeof(T) % 16 == 0) {
#pragma unroll 4
    for (int k = threadIdx.x; k < words; k += threads) reserved[k] = __ldg((const int4*)from + k);
  } else {
    for (int k = threadIdx.x; k < count; k += threads) ((T*)reserved)[k] = from[k];
  }
  __syncthreads();
  return (const T*)reserved;
}
#else
template <int count, class T> DEVICE const T* shared_copy(const T* from) { return from; }
#endif

DEVICE void run(const Arrays& arrays) {
  const int share = blockIdx.x % shares, group = blockIdx.x / shares, image = group / groups;
  const int64 first = (int64)group * planes;
  const auto* const texels = shared_copy<planes * plane_texels>(arrays.texels + first * plane_texels);
  for (int tile = share; tile < tiles_of_image; tile += shares) {
    // All coordinates are loaded first, because a load would wait for an earlier store.
    Position places[steps];
    Coords coords[steps];
#pragma unroll
    for (int s = 0; s < steps; s++) {
      places[s] = position_of<Tiles>(image * tiles_of_image + tile, threadIdx.x, s);
      coords[s] = coords_of(arrays, places[s], 0, 0);
    }
#pragma unroll
    for (int s = 0; s < steps; s++) {
      const Position at = places[s];
#pragma unroll
      for (int k = 0; k < planes; k++) {
        Arrays shared = arrays;
        shared.texels = texels + k * plane_texels;
        const Result found = result_of_value(read_at(shared, at, 0, coords[s]).value);
        if (at.exists) arrays.result[(first + k) * samples_of_image + at.x] = found.v[0];
      }
    }
  }
}
