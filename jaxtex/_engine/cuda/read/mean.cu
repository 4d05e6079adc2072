Row<@type@, @width@> total, term;
for (int k = 0; k < @width@; k++) total.v[k] = @zero@;
for (int number = 1; number <= @count@; number++) {
  @of_read@
  for (int k = 0; k < @width@; k++) term.v[k] = @nothing@;
  if (@counts@) {
    @of_value@
  }
  @of_total@
}
