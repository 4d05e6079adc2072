// A grid, seen from a texture: the position of the first sample, less the origin of the filter; how far it moves with each
// step along x, y, z; and the inverse of that. `margin` bounds the rounding of a position. Only some grids are `taken`.
struct View { float base[@dims@], slope[@dims@][@dims@], inverse[@dims@][@dims@], margin; bool taken; };

DEVICE View view_of(@operands@, int outer) {
  @view_statements@
  return {@view@};
}
