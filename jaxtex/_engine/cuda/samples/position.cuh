// Which sample a lane takes in a step of its work: the number of an image, and a place in it.
struct Position { int outer, z, y, x; bool exists; };

// Samples lie in tiles, so that neighboring lanes read neighboring texels. Places outside are moved to the last one.
DEVICE Position position_of(uint32 tile, uint32 lane, uint32 step) {
  Position at;
  const uint32 column = tile % @tiles_across@, row = tile / @tiles_across@ % @tiles_down@;
  const uint32 slice = tile / @tiles_per_slice@ % @tiles_deep@;
  at.x = column * @tile_across@ + lane % @lanes_across@ * @lane_across@ + step % @steps_across@ * @step_across@;
  at.y = row * @tile_down@ + lane / @lanes_across@ % @lanes_down@ * @steps_down@ + step / @steps_across@ % @steps_down@;
  at.z = slice * @tile_deep@ + lane / @lanes_per_slice@ * @steps_deep@ + step / @steps_per_slice@;
  at.outer = tile / @tiles_per_image@;
  at.exists = @exists@;
  if (!at.exists) at.x = min(at.x, @across@ - 1), at.y = min(at.y, @down@ - 1), at.z = min(at.z, @deep@ - 1);
  return at;
}
