// Writes all numbers of the texture of a warp: those that the window holds, and zeros.
constexpr int sizes[@axes@] = {@sizes@}, slice = @texture_size@ / sizes[@first_axis@];
for (int k = lane * @numbers_at_once@; k < @texture_size@; k += 32 * @numbers_at_once@) {
  Row<float, @numbers_at_once@> found;
  for (int m = 0; m < @numbers_at_once@; m++) found.v[m] = 0;
  const uint32 low_slice = low[@first_axis@], slices = size[@first_axis@];
  const uint32 from = k / slice - low_slice, to = (k + @numbers_at_once@ - 1) / slice - low_slice;
  if (slice < @numbers_at_once@ || from < slices || to < slices)
    for (int m = 0; m < @numbers_at_once@; m++) {
      int rest = (k + m) / @channels@, cell = 0;
      bool holds = true;
      for (int n = @axes@ - 1; n >= @first_axis@; n--) {
        const uint32 at = (uint32)(rest % sizes[n]) - (uint32)low[n];
        holds = holds && at < (uint32)size[n];
        cell += at * stride[n];
        rest /= sizes[n];
      }
      if (holds) found.v[m] = window[cell * @row@ + (k + m) % @channels@];
    }
  store_aligned_row(own_texture + k, found);
}
