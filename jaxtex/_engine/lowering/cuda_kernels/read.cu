// A read. A thread takes one sample; the threads of a block lie side by side in a tile of the samples.
extern "C" __global__ void __launch_bounds__(@threads@) @name@(@parameters@) {
  const int tile = blockIdx.x, thread = threadIdx.x;
  const int column = tile % @tiles_across@, row = tile / @tiles_across@ % @tiles_down@;
  const int outer = tile / @tiles_per_image@;
  const int x = column * @tile_width@ + thread % @tile_width@;
  const int y = row * @tile_height@ + thread / @tile_width@;
  if (x >= @across@ || y >= @down@) return;
  @statements@
  const Row<@type@, @channels@> value = {{@values@}};
  @store@(out + @element@, value);
}
