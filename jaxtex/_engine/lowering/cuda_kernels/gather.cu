// The adjoint of a read at an affine grid, without atomic additions: each thread owns a block of texels, and looks for the
// samples whose taps fall on them. Those lie in a parallelogram of each image.

// A grid, seen from a texture: the position of the first sample, less the origin of the filter; how far it moves with each
// step along x, y, z; and the inverse of that. `margin` bounds the rounding of a position. Only some grids are `taken`.
struct View { float base[@dims@], slope[@dims@][@dims@], inverse[@dims@][@dims@], margin; bool taken; };
// On each axis: the texels of a sample's taps, and their weights.
struct AxisTaps { int texel[@dims@][@taps@]; float weight[@dims@][@taps@]; };

DEVICE View view_of(@operands@, int outer) {
  @view_statements@
  return {@view@};
}

DEVICE AxisTaps taps_at(@operands@, int outer, int z, int y, int x) {
  @axis_taps_statements@
  return {@axis_taps@};
}
