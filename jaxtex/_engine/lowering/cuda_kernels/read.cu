// A read. A thread takes one sample, or some neighboring channels of one, and a block a tile of the samples.
extern "C" __global__ void __launch_bounds__(@threads@) @name@(@parameters@) {
  const int tile = blockIdx.x, thread = threadIdx.x / @parts@, part = threadIdx.x % @parts@;
  const int column = tile % @tiles_across@, row = tile / @tiles_across@ % @tiles_down@;
  const int outer = tile / @tiles_per_image@;
  const int x = column * @tile_width@ + thread % @tile_width@;
  const int y = row * @tile_height@ + thread / @tile_width@;
  if (x >= @across@ || y >= @down@) return;
  @statements@
  const Row<@type@, @width@> value = {{@values@}};
  @store@(out + (int64)@sample@ * @channels@ + @channel@, value);
}
