{
  // The taps of walk @walk@, at these steps along the axes from the first one.
  constexpr int tap_offsets[@taps@][@axes@] = {@tap_offsets@};
  constexpr int span[@axes@] = {@span@};
  Coords kept[@kept@];
  int low[@axes@], size[@axes@], stride[@axes@];
  for (int k = 0; k < @axes@; k++) low[k] = 2147483647, size[k] = -2147483647 - 1;
#pragma unroll 8
  for (int s = 0; s < @steps@; s++) {
    const Position at = position_of<Tiles>(tile, number, s);
    const Coords coords = coords_of(@operand_names@, at.outer, at.z, at.y, at.x);
    if (s < @kept@) kept[s] = coords;
    const Taps taps = taps_of_@walk@(coords);
    if (at.exists)
      for (int k = 0; k < @axes@; k++) {
        low[k] = min(low[k], taps.first[k]);
        size[k] = max(size[k], taps.first[k] + span[k]);  // the last tap; the size follows from it below
      }
  }
  float cells = 1;
#pragma unroll
  for (int k = @axes@ - 1; k >= 0; k--) {
    low[k] = least_of_lanes(low[k]);
    const uint32 rest = (uint32)greatest_of_lanes(size[k]) - (uint32)low[k];
    stride[k] = k == @axes@ - 1 ? 1 : (int)min(cells, 1e6f);
    size[k] = rest + 1;
    const uint32 pitch = k == @axes@ - 1 && k > 0 ? rest + 1 | 1 : rest + 1;  // odd, against conflicts of banks
    cells *= rest < 65536 ? (float)pitch : 1e9f;
  }
  if (cells <= @cells@) {
    int steps[@taps@];
#pragma unroll
    for (int n = 0; n < @taps@; n++) {
      steps[n] = 0;
      for (int k = 0; k < @axes@; k++) steps[n] += tap_offsets[n][k] * stride[k];
    }
    for (int k = lane * 4; k < (int)cells * @row@; k += 128) store_four(window + k, 0);
    wait_for_lanes();
    // What a lane holds of a run of samples in one cell.
    bool holds = false;
    int held_cell = 0;
    Value held[@taps@] = {};
#pragma unroll @batches_at_once@
    for (int s = 0; s < @steps@; s += @batch@) {
      Value values_of_batch[@batch@];
#pragma unroll
      for (int j = 0; j < @batch@; j++) {
        const Position at = position_of<Tiles>(tile, number, s + j);
        values_of_batch[j] = value_of(values, offsets_of(at.outer, at.z, at.y, at.x), part);
      }
#pragma unroll
      for (int j = 0; j < @batch@; j++) {
        const Position at = position_of<Tiles>(tile, number, s + j);
        if constexpr (@skips@) values_of_batch[j] = value_if_added(values_of_batch[j], @coords_of_step@);
        if constexpr (@pulls@)
          pull_sample(at, @coords_of_step@, values_of_batch[j], part, takes_part, lane, cotangents_to, sums,
                      @texels_or_none@, @operand_names@);
      }
#pragma unroll
      for (int j = 0; j < @batch@; j++) {
        const Position at = position_of<Tiles>(tile, number, s + j);
        const bool exists = at.exists && takes_part;
        const Value value = values_of_batch[j];
        const Taps taps = taps_of_@walk@(@coords_of_step@);
        int cell = 0;
        for (int k = 0; k < @axes@; k++) cell += (taps.first[k] - low[k]) * stride[k];
        if constexpr (@runs@) {
          const bool stays = holds && cell == held_cell, leaves = exists && holds && !stays;
          if (any_lane(leaves)) add_in_turns(window, leaves, held_cell, part, lane, steps, [&](int n) { return held[n]; });
          if (exists) {
#pragma unroll
            for (int n = 0; n < @taps@; n++) {
              const Value more = product(value, taps.weight[n]);
              for (int k = 0; k < @width@; k++) held[n].v[k] = (stays ? held[n].v[k] : 0) + more.v[k];
            }
            held_cell = cell, holds = true;
          }
        } else {
          add_in_turns(window, exists, cell, part, lane, steps, [&](int n) { return product(value, taps.weight[n]); });
        }
      }
    }
    if constexpr (@runs@) add_in_turns(window, holds, held_cell, part, lane, steps, [&](int n) { return held[n]; });
    wait_for_lanes();
    if constexpr (@writes_whole@) {
      @whole@
    } else {
      // Each lane takes pieces of @piece@ numbers, row by row.
      constexpr int last = @axes@ - 1, before = last > 0 ? last - 1 : 0;
      const int width = size[last] * @pieces@;
      int at[@axes@], i = lane;
      for (int k = 0; k < @axes@; k++) at[k] = 0;
      for (;;) {
        if constexpr (last > 0) {
          while (i >= width) i -= width, at[before]++;
#pragma unroll
          for (int k = before; k > 0; k--)
            while (at[k] >= size[k]) at[k] -= size[k], at[k - 1]++;
        }
        if (last > 0 ? at[0] >= size[0] : i >= width) break;
        int cell = i / @pieces@;
        for (int k = 0; k < last; k++) cell += at[k] * stride[k];
        const int column = i % @pieces@ * @piece@;
        const Piece piece = load_shared<@piece@>(window + cell * @row@ + column);
        if (!is_zero(piece)) {
          int index[@axes@];
          for (int k = 0; k < last; k++) index[k] = low[k] + at[k];
          index[last] = low[last] + i / @pieces@;
          const Texel texel = texel_of(index);
          const int channel = first_channel(column / @width@) + column % @width@;
          if (texel.inside) add_to_texel(totals + (int64)texel.number * @total_width@ + channel, piece, @units@);
        }
        i += 32;
      }
    }
    wait_for_lanes();
  } else {
    if constexpr (@writes_whole@) set_to_zero(own_texture, lane);
#pragma unroll 1
    for (int s = 0; s < @steps@; s++) {
      const Position at = position_of<Tiles>(tile, number, s);
      const Coords coords = coords_of(@operand_names@, at.outer, at.z, at.y, at.x);
      const Value value = value_if_added(value_of(values, offsets_of(at.outer, at.z, at.y, at.x), part), coords);
      const Taps taps = taps_of_@walk@(coords);
      if constexpr (@pulls@)
        pull_sample(at, coords, value, part, takes_part, lane, cotangents_to, sums, @texels_or_none@, @operand_names@);
      if (at.exists && takes_part) {
        Texel texels_of_taps[@taps@];
#pragma unroll
        for (int n = 0; n < @taps@; n++) {
          int index[@axes@];
          for (int k = 0; k < @axes@; k++) index[k] = taps.first[k] + tap_offsets[n][k];
          texels_of_taps[n] = texel_of(index);
        }
#pragma unroll
        for (int n = 0; n < @taps@; n++) {
          const Texel texel = texels_of_taps[n];
          const Value part_of_tap = product(value, taps.weight[n]);
          if constexpr (@pairs@) {
            // Two texels side by side in memory, the first of even number, are one addition.
            const Texel other = texels_of_taps[n ^ 1];
            if (texel.inside && other.inside && (texel.number ^ other.number) == 1) {
              if (n % 2) continue;
              const Value part_of_other = product(value, taps.weight[n ^ 1]);
              const bool odd = texel.number % 2;
              Row<float, @pair@> pair;
              for (int k = 0; k < @width@; k++) {
                pair.v[k] = odd ? part_of_other.v[k] : part_of_tap.v[k];
                pair.v[k + @width@] = odd ? part_of_tap.v[k] : part_of_other.v[k];
              }
              add_to_memory(totals + (int64)min(texel.number, other.number) * @total_width@, pair);
              continue;
            }
          }
          float* const total = totals + (int64)texel.number * @total_width@ + first_channel(part);
          if (texel.inside)
#pragma unroll
            for (int k = 0; k < @width@; k += @piece@) {
              Piece piece;
              for (int m = 0; m < @piece@; m++) piece.v[m] = part_of_tap.v[k + m];
              add_to_texel(total + k, piece, @units@);
            }
        }
      }
    }
  }
}
