// How each image of samples lies on its texture, by a thread of its own: see `view`.
extern "C" __global__ void __launch_bounds__(@threads@) @name@(@parameters@) {
  const int outer = blockIdx.x * @threads@ + threadIdx.x;
  if (outer >= @images@) return;
  @view_statements@
  store_row(views + outer * @numbers@, Row<float, @numbers@>{{@view@}});
}
