#pragma unroll
for (int s = 0; s < @steps@; s++) {
  const Position at = position_of<Tiles>(tile, number, s);
  const Coords coords = coords_of(@operand_names@, at.outer, at.z, at.y, at.x);
  const Value value = value_if_added(value_of(values, offsets_of(at.outer, at.z, at.y, at.x), part), coords);
  pull_sample(at, coords, value, part, takes_part, lane, cotangents_to, sums, @texels_or_none@, @operand_names@);
}
