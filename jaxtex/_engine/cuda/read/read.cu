// A read. A thread takes some samples, or some neighboring channels of them, and a block a tile of the samples.
extern "C" __global__ void __launch_bounds__(@threads@) @name@(@parameters@) {
  const int part = threadIdx.x % @parts@;
  @arrays@
  @tiles@ {
    const int tile = @tile@;
#pragma unroll
    for (int s = 0; s < @steps@; s++) {
      const Position at = position_of(tile, threadIdx.x / @parts@, s);
      const int outer = at.outer, z = at.z, y = at.y, x = at.x;
      @statements@
      const Row<@type@, @width@> value = {{@values@}};
      if (at.exists) @store@(out + @place@ + @channel@, value);
      @note@
    }
  }
}
