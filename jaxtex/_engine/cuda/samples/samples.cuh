// Of a sample: the number of its value, its own number, and that of the first texel of the texture it reads.
struct Offsets { int value, sample, texels; };
// The channels of a value that a thread takes.
typedef Row<float, @width@> Value;

// The last part is moved back where the channels do not divide; so many of its channels belong to the part before.
DEVICE int overlap_of(int part) { return part == @parts@ - 1 ? @overlap@ : 0; }
// The first of the channels of a part.
DEVICE int first_channel(int part) { return part * @width@ - overlap_of(part); }

DEVICE Offsets offsets_of(int outer, int z, int y, int x) {
  @offsets_statements@
  return {@offsets@};
}

DEVICE Value load_value(const float* values, const Offsets& offsets, int part) {
  return @load@<@width@>(values + @place_of_value@ + first_channel(part));
}
