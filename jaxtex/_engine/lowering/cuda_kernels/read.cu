// A read. A thread takes one sample, or some neighboring channels of one, and a block a tile of the samples.
extern "C" __global__ void __launch_bounds__(@threads@) @name@(@parameters@) {
  const int part = threadIdx.x % @parts@;
  const Position at = position_of(blockIdx.x, threadIdx.x / @parts@, 0);
  if (!at.exists) return;
  const int outer = at.outer, z = at.z, y = at.y, x = at.x;
  @statements@
  const Row<@type@, @width@> value = {{@values@}};
  @store@(out + (int64)@sample@ * @channels@ + @channel@, value);
}
