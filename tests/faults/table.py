"""Hand-made faults that the tests must find, one replacement each: `python -m tests.faults` puts them in."""

from typing import NamedTuple


class Fault(NamedTuple):
    """A replacement of `old` by `new` in `path`, and the tests that are run: a file and pytest's `-k`."""

    path: str
    old: str
    new: str
    tests: str
    select: str = ""


TABLES, ENGINE, HARDWARE, CUDA = "jaxtex/_tables/", "jaxtex/_engine/", "jaxtex/_hardware/", "jaxtex/cuda/"
BLOCKS = "jaxtex/_blocks/"
FAULTS = {
    "wrap is off by one": Fault(
        TABLES + "address_rules.py",
        "return module_of(tap).mod(tap, size), None",
        "return module_of(tap).mod(tap + 1, size), None",
        "test_values.py",
    ),
    "reflect has a longer period": Fault(
        TABLES + "address_rules.py",
        "max(2 * (size - 1), 1)\n    phase",
        "max(2 * size - 1, 1)\n    phase",
        "test_values.py",
    ),
    "one texel past the end is inside": Fault(
        TABLES + "address_rules.py",
        "tap.astype(xp.uint32) < xp",
        "tap.astype(xp.uint32) <= xp",
        "test_values.py",
    ),
    "one texel past the end is inside in sums": Fault(
        TABLES + "address_rules.py",
        "return tap, is_inside(tap, size)",
        "return tap, is_inside(tap, size + 1)",
        "test_adjoint.py",
        "long_sums",
    ),
    "sums read the first channels": Fault(
        ENGINE + "cuda/trace/indexing.py", "terms[:num_kept]", "terms[1:num_kept]", "test_adjoint.py", "starts_of"
    ),
    "a cubic weight has another slope": Fault(
        TABLES + "filter_kernels.py",
        "(0.0, -a, 2 * a + 3, -(a + 2))",
        "(0.0, -a, 2 * a + 3, -(a + 1))",
        "test_values.py",
    ),
    "second derivatives lack a factor": Fault(
        ENGINE + "walk/texel_walk.py", "* axis.order)", "* min(axis.order, 1))", "test_gradients.py"
    ),
    "mirrored coordinates lose their parity": Fault(
        ENGINE + "walk/texel_walk.py",
        "coord - 2 * jnp.trunc(coord * 0.5)",
        "coord - jnp.trunc(coord)",
        "test_values.py",
    ),
    "a tie of a direction goes to x": Fault(
        ENGINE + "describe/cube.py", "(jnp.abs(y) >= jnp.abs(x))", "(jnp.abs(y) > jnp.abs(x))", "test_cubemaps.py"
    ),
    "a corner's weight is lost in part": Fault(
        ENGINE + "walk/texel_walk.py", "1 / (len(self.taps) - 1)", "1 / len(self.taps)", "test_cubemaps.py"
    ),
    "reads along a footprint are shifted": Fault(
        ENGINE + "describe/footprint.py",
        "number / (num_reads + 1) - 0.5",
        "number / (num_reads + 1) - 0.4",
        "test_mipmaps.py",
        "footprint",
    ),
    "the bias is subtracted": Fault(
        ENGINE + "describe/footprint.py",
        "0) + sampler.mipmap_level_bias",
        "0) - sampler.mipmap_level_bias",
        "test_mipmaps.py",
        "level_of_detail",
    ),
    "the derivative of a splat changes its sign": Fault(
        ENGINE + "rules/transformations.py",
        "values * tangent[..., None]",
        "-values * tangent[..., None]",
        "test_gradients.py",
    ),
    "the cotangent of a shared texture is a mean": Fault(
        ENGINE + "compute/linearization.py",
        "return jnp.sum(x, repeated, keepdims=True)",
        "return jnp.mean(x, repeated, keepdims=True)",
        "test_transforms.py",
        "gradient_of_a_vmap",
    ),
    "a batch of shared textures is misplaced": Fault(
        ENGINE + "rules/transformations.py",
        "dim = batch if shared else 0",
        "dim = 0",
        "test_transforms.py",
        "nested",
    ),
    "a coarse unit is too fine": Fault(
        ENGINE + "compute/texel_sums.py",
        "coarse = jnp.clip(bound - digits,",
        "coarse = jnp.clip(bound - digits - 3,",
        "test_adjoint.py",
        "any_order",
    ),
    "a sum of integers has too fine a unit": Fault(
        ENGINE + "cuda/scatter/exact_sums.py",
        "exponent - SUM_BITS",
        "exponent - SUM_BITS - 5",
        "test_adjoint.py",
        "overflow",
    ),
    "stored windows are added in the order in which they came": Fault(
        ENGINE + "cuda/scatter/stored.cu",
        "place += numbers[n] < number",
        "place += n < k",
        "test_adjoint.py",
        "windows_do_not",
    ),
    "sums of integers replace those of stored windows": Fault(
        ENGINE + "cuda/scatter/stored.cu",
        "adds_windows ? sums[first + n].v[m] + sum : sum",
        "sum",
        "test_adjoint.py",
        "windows_do_not",
    ),
    "a warp stores results where their coordinates were not": Fault(
        ENGINE + "cuda/read/read.cu",
        "exchange_halves(results[s], results[s + pairs])",
        "exchange_halves(results[s], results[s])",
        "test_cuda_c_reads.py",
        "several_samples and lines",
    ),
    "a list of windows has no end": Fault(
        ENGINE + "cuda/scatter/squares.cuh",
        "marks[2 * square] > Stored::most_windows",
        "false",
        "test_adjoint.py",
        "windows_do_not",
    ),
    "samples that lie apart are added nowhere": Fault(
        ENGINE + "cuda/scatter/window.cuh",
        "else if (has) mark_square(arrays, square_of(at))",
        "else if (false) mark_square(arrays, square_of(at))",
        "test_adjoint.py",
        "windows_do_not",
    ),
    "a crowded window has a row too few": Fault(
        ENGINE + "cuda/scatter/window.cuh",
        "of.size[y] = ~box.rows",
        "of.size[y] = ~box.rows - 1",
        "test_adjoint.py",
        "stored_windows or windows_do_not",
    ),
    "a sum of integers forgets the infinities that it met": Fault(
        ENGINE + "cuda/scatter/exact_sums.cuh",
        "met |= sum & met_any, total",
        "total",
        "test_adjoint.py",
        "not_finite",
    ),
    "parts of a sum are added over too few devices": Fault(
        ENGINE + "forms/partitioned_call.py",
        "result, x), over)",
        "result, x), over[:1])",
        "test_partitioned_calls.py",
        "meshes",
    ),
    "the padding of parts adds to a sum": Fault(
        ENGINE + "forms/partitioned_call.py",
        "< size, x, 0)",
        "<= size, x, 0)",
        "test_partitioned_calls.py",
        "padding_that",
    ),
    "the padding of parts adds to the cotangent of a matrix": Fault(
        ENGINE + "forms/partitioned_call.py",
        "for k in call.summed:",
        "for k in call.summed[:0]:",
        "test_partitioned_calls.py",
        "padding",
    ),
    "the cotangent of a matrix misses half of a tile": Fault(
        ENGINE + "cuda/scatter/adjoint.cu",
        "bits = 1; bits < lanes; bits *= 2) sums",
        "bits = 1; bits < lanes / 2; bits *= 2) sums",
        "test_affine_adjoint.py",
        "matrix",
    ),
    "a shared operand's cotangent is summed over a batch": Fault(
        ENGINE + "rules/transformations.py",
        "TEXELS not in wrt and all(dims[2 + k] is not None for k in wrt)",
        "TEXELS not in wrt",
        "test_transforms.py",
        "several_directions",
    ),
    "a slice of an array begins with its row": Fault(
        ENGINE + "cuda/samples/position.cuh",
        "* Slice::channels + Slice::start",
        "* Slice::channels",
        "test_concatenated_reads.py",
        "windows",
    ),
    "a run of samples goes on in the next cell": Fault(
        ENGINE + "cuda/scatter/window.cuh",
        "stays = holds && cell == held_cell,",
        "stays = holds,",
        "test_forms.py",
        "crowd",
    ),
    "texels look too near for their samples": Fault(
        ENGINE + "cuda/gather/gather_source.py",
        "reach = [(n - 1 + k.num_taps) * 0.5 + L",
        "reach = [(n - 1 + k.num_taps) * 0.4 + L",
        "test_affine_adjoint.py",
        "turn or channels",
    ),
    "gathered images are added once more": Fault(
        ENGINE + "cuda/scatter/adjoint.cu",
        ".outer)) continue;",
        ".outer) && tile == 0) continue;",
        "test_affine_adjoint.py",
        "some_images",
    ),
    "a signed byte is rounded down": Fault(
        HARDWARE + "blend.py",
        "(257 * (s >> 4) + 1024) >> 11",
        "(257 * (s >> 4) + 1023) >> 11",
        "test_hardware.py",
        "recorded",
    ),
    "a position is rounded at another bit": Fault(
        HARDWARE + "taps.py", "(one >> 9)", "(one >> 10)", "test_hardware.py", "recorded"
    ),
    "half a weight goes up": Fault(
        HARDWARE + "taps.py",
        "(x0 * down + 127) >> 8",
        "(x0 * down + 128) >> 8",
        "test_hardware.py",
        "recorded",
    ),
    "lengths keep one bit more": Fault(
        HARDWARE + "footprint.py", "BITS = 10", "BITS = 11", "test_hardware.py", "recorded"
    ),
    "the first of several writes is kept": Fault(
        ENGINE + "compute/texel_write.py",
        "jnp.append(changes, True)",
        "jnp.concatenate([jnp.array([True]), changes])",
        "test_surfaces.py",
        "last_write or batches_equal",
    ),
    "clamped layers below zero are the first": Fault(
        "jaxtex/surface.py",
        "space, layers = CLAMP, LAST",
        "space, layers = CLAMP, CLAMP",
        "test_surfaces.py",
    ),
    "the first of many writes is kept": Fault(
        ENGINE + "compute/texel_write.py",
        'address.inside, number[..., None], "max")',
        'address.inside, number.size - number[..., None], "max")',
        "test_fuzz_memory.py",
        "surfaces",
    ),
    "integers of 64 bits are cut": Fault(
        "jaxtex/_checks/integers.py",
        "if any_size or jnp.iinfo(array.dtype).max > limits.max:",
        "if any_size:",
        "test_fuzz_memory.py",
        "surfaces",
    ),
    "a misaligned access is made": Fault(
        CUDA + "surfaces/surface_access.py",
        "indices[0] = jnp.where(aligned, indices[0], -1)",
        "pass",
        "test_fuzz_memory.py",
        "cuda",
    ),
    "unsigned coordinates are exact": Fault(
        "jaxtex/_checks/arguments.py", "if wrap_unsigned and ", "if False and ", "test_fuzz_memory.py", "cuda"
    ),
    "slices of memory overlap": Fault(
        CUDA + "memory/regions.py",
        "+ s * region.slice_pitch",
        "+ s * region.pitch * region.height",
        "test_fuzz_memory.py",
        "copies",
    ),
    "a run of bytes starts elsewhere": Fault(
        CUDA + "memory/copies.py",
        "start = row * width + offset",
        "start = row * width",
        "test_fuzz_memory.py",
        "copies",
    ),
    "the read mode is checked before the filter": Fault(
        CUDA + "textures/descriptors.py",
        "(OK, Error.InvalidFilterSetting, Error.InvalidNormSetting, Error.InvalidFilterSetting)",
        "(OK, Error.InvalidFilterSetting, Error.InvalidNormSetting, Error.InvalidNormSetting)",
        "test_fuzz_memory.py",
        "descriptors",
    ),
    "a tie goes to another value": Fault(
        ENGINE + "compute/texel_write.py",
        "numbers(shape)[..., None], count)",
        "count - 1 - numbers(shape)[..., None], count)",
        "test_fuzz_memory.py",
        "gradients",
    ),
    "values wrap around": Fault(
        "jaxtex/_checks/surfaces.py",
        "saturated(values, texture.dtype) if integers else",
        "values.astype(texture.dtype) if integers else",
        "test_fuzz_memory.py",
        "values",
    ),
    "a limit forgets its upper bound": Fault(
        ENGINE + "walk/combinations.py",
        "jnp.where(total > high, high, total)",
        "total",
        "test_limit.py",
        "values",
    ),
    "a limit takes another neighbor": Fault(
        ENGINE + "walk/combinations.py",
        "(tap.unbounded[k] == low + 1)",
        "(tap.unbounded[k] == low + 2)",
        "test_limit.py",
    ),
    "a tie of labels goes to the largest": Fault(
        ENGINE + "walk/combinations.py", "(value < chosen)", "(value > chosen)", "test_labels.py", "ties"
    ),
    "an inverse flow is differentiated as if it were constant": Fault(
        "jaxtex/warp/flows.py",
        "slope + 1 if i == k else slope for",
        "1.0 + 0 * slope if i == k else 0 * slope for",
        "test_flows.py",
        "inverse",
    ),
    "the center of a transform of ITK stays out": Fault(
        "jaxtex/warp/conventions/physical_space.py", "c[k] + t[k] - dot(row, c)", "t[k]", "test_physical_space.py"
    ),
    "dark codes of sRGB are too bright": Fault(
        TABLES + "storage_formats.py",
        "SLOPE, OFFSET, EXPONENT = 12.92,",
        "SLOPE, OFFSET, EXPONENT = 12.9,",
        "test_srgb.py",
    ),
    "signed codes have a bit more": Fault(
        ENGINE + "compute/texel_value.py",
        "ratio(texel, bits, dtype), -1)",
        "ratio(texel, bits + 1, dtype), -1)",
        "test_values.py",
    ),
    "sums: a weight counts as the texel beside it": Fault(
        ENGINE + "describe/axis.py", "Polynomials(((0.0, 1.0),))", "Polynomials(((1e-3, 1.0),))", "test_nn_weighted.py"
    ),
    "sums: a term has the value of another sample": Fault(
        ENGINE + "forms/cpu.py",
        "row = row + jax.lax.rem(sample, np.int32(n)) * np.int32(stride)",
        "row = row + jax.lax.rem(sample + 1, np.int32(n)) * np.int32(stride)",
        "test_forms.py",
        "heads",
    ),
    "sums: a kernel leaves out the last term": Fault(
        ENGINE + "cuda/read/read.cu",
        "number < group_size",
        "number < group_size - 1",
        "test_forms.py",
        "heads",
    ),
    "planes: a block reads those of another": Fault(
        ENGINE + "cuda/read/planes.cu",
        "(int64)group * planes;",
        "(int64)group;",
        "test_cuda_c_reads.py",
        "planes",
    ),
    "adjoint: two texels side by side change places": Fault(
        ENGINE + "cuda/scatter/window.cuh",
        "const bool odd = texel.number % 2;",
        "const bool odd = texel.number % 2 == 0;",
        "test_forms.py",
        "random",
    ),
    "adjoint: lanes add a tap at the place of another": Fault(
        ENGINE + "cuda/scatter/window.cuh",
        "share.offset[W::axis(n)] += place",
        "share.offset[W::axis(n)] += place / 2",
        "test_forms.py",
        "volume",
    ),
    "adjoint: a texture keeps what was in memory": Fault(
        ENGINE + "cuda/scatter/window.cuh",
        "for (int k = lane; k < texture_size; k += lanes) texture[k] = 0;",
        "for (int k = lane + 1; k < texture_size; k += lanes) texture[k] = 1;",
        "test_crowds.py",
    ),
    "convolution: a side of the filter is shifted": Fault(
        ENGINE + "cuda/filters/convolve_along.cu",
        "middle[k * inner]",
        "middle[(k - 1) * inner]",
        "test_spline_filter.py",
    ),
    "mip levels: a mean with a column that is too far": Fault(
        ENGINE + "cuda/filters/levels.cu",
        "lanes_of_texel << (level - 1)",
        "lanes_of_texel << level",
        "test_mip_kernels.py",
    ),
    "mip levels: a texel of a block is averaged with itself": Fault(
        ENGINE + "cuda/filters/levels.cu",
        "* along_across + beside)",
        "* along_across)",
        "test_mip_kernels.py",
    ),
    "mip levels: the shares of a cotangent are too small": Fault(
        ENGINE + "cuda/filters/levels_adjoint.cu",
        "constexpr float share = 1.0f /",
        "constexpr float share = 0.9f /",
        "test_mip_kernels.py",
    ),
    "grid: a hashed level is read by strides": Fault(
        ENGINE + "describe/hashing.py", "is_hashed = of_level(", "is_hashed = 0 * of_level(", "test_nn.py"
    ),
    "a loop writes over what it reads through a call": Fault(
        "jaxtex/_jax/barriers.py",
        "bind(*results, *(args[k] for k in numbers))",
        "bind(*results)",
        "test_chained_reads.py",
        "through_a_call",
    ),
    "clamp reads one texel past the end": Fault(
        TABLES + "address_rules.py",
        "clip(tap, 0, size - 1), None",
        "clip(tap, 0, size), None",
        "test_tables.py",
        "rules_are_true",
    ),
    "mirror repeats too late": Fault(
        TABLES + "address_rules.py",
        "xp.minimum(phase, 2 * size - 1 - phase)",
        "xp.minimum(phase, 2 * size - phase)",
        "test_tables.py",
        "rules_are_true",
    ),
    "layers below zero are the first": Fault(
        TABLES + "address_rules.py",
        "where(is_inside(tap, size), tap, size - 1)",
        "clip(tap, 0, size - 1)",
        "test_values.py",
        "layer",
    ),
    "a pole is one row off": Fault(
        TABLES + "address_rules.py",
        "jnp.where(beyond, 2 * height - 1 - phase, phase)",
        "jnp.where(beyond, 2 * height - phase, phase)",
        "test_sphere.py",
        "unfolded",
    ),
    "beyond a pole the meridian stays": Fault(
        TABLES + "address_rules.py", "jnp.where(beyond, *x)", "x[1]", "test_sphere.py", "unfolded"
    ),
    "knots beyond a pole begin again": Fault(
        "jaxtex/_reads/knots.py",
        "jnp.concatenate([knots, 2 * stop - knots[::-1]])",
        "jnp.concatenate([knots, knots + stop - start])",
        "test_knots.py",
        "values_on_a_sphere",
    ),
    "four knots at an end lie on one side": Fault(
        "jaxtex/_reads/knots.py",
        "jnp.clip(cell - 1, 0, self.size - count) if self.ends",
        "jnp.clip(cell, 0, self.size - count) if self.ends",
        "test_knots.py",
        "values_in_each_mode",
    ),
    "a rule claims to saturate": Fault(
        TABLES + "address_rules.py",
        'name="wrap", apply=wrap, repeats=True',
        'name="wrap", apply=wrap, saturates=True, repeats=True',
        "test_tables.py",
        "rules_are_true",
    ),
    "Mitchell's filter has another weight": Fault(
        TABLES + "filter_kernels.py",
        "(8 / 9, 0.0, -2.0, 7 / 6)",
        "(8 / 9, 0.0, -2.0, 6 / 6)",
        "test_tables.py",
        "filters_are_true",
    ),
    "Lanczos has no window": Fault(
        TABLES + "filter_kernels.py",
        "return sinc(x) * sinc(x / lobes)",
        "return sinc(x)",
        "test_filters.py",
        "values",
    ),
    "a Gaussian is wider": Fault(
        TABLES + "filter_kernels.py",
        "jnp.exp(-2 * x**2)",
        "jnp.exp(-1.9 * x**2)",
        "test_filters.py",
        "values",
    ),
    "a spline's weight lacks a sign": Fault(
        TABLES + "filter_kernels.py",
        "Fraction((-1) ** k * math.comb",
        "Fraction(math.comb",
        "test_tables.py",
        "filters_are_true",
    ),
    "the upper bound of the level wins": Fault(
        ENGINE + "describe/footprint.py",
        "lod = jnp.where(lod < low, lod.dtype.type(low), lod)",
        "lod = jnp.where((lod < low) & (low < high), lod.dtype.type(low), lod)",
        "test_mipmaps.py",
        "level_of_detail",
    ),
    "a long footprint reads too coarse a level": Fault(
        ENGINE + "describe/footprint.py",
        "lod, num_reads = lod - jnp.log2(eta)",
        "lod, num_reads = lod - 0.9 * jnp.log2(eta)",
        "test_mipmaps.py",
        "footprints_and_their",
    ),
    "of three sides the second is forgotten": Fault(
        ENGINE + "describe/footprint.py",
        "shorter = jnp.where(is_longer, longest, jnp.where(square > shorter, square, shorter))",
        "shorter = jnp.where(is_longer, longest, shorter)",
        "test_interface.py",
        "three_sides",
    ),
    "odd rows of a chain weigh alike": Fault(
        ENGINE + "compute/filters.py",
        "(along + 1 / m) * (m / size)",
        "along * (m / size)",
        "test_mipmaps.py",
        "built_by_a_box",
    ),
    "a chain begins one texel late": Fault(
        "jaxtex/warp/sized/texels.py",
        "self.start + self.height * self.width, self",
        "self.start + self.height * self.width + 1, self",
        "test_sized.py",
        "chain_is_made",
    ),
    "of two negative weights the sign is lost": Fault(
        ENGINE + "walk/drawn_taps.py",
        "below = below ^ choice.of(",
        "below = below | choice.of(",
        "test_stochastic.py",
        "unbiased or error_falls",
    ),
    "a drawn read is the one before": Fault(
        ENGINE + "walk/drawn_taps.py",
        "self.grid.read(before + 1, *operands)",
        "self.grid.read(before, *operands)",
        "test_stochastic.py",
        "every_kind",
    ),
    "channels of a word change places": Fault(
        ENGINE + "compute/texel_value.py",
        "[channels], axis) * 8",
        "[channels], axis) * 8 ^ 8",
        "test_cpu_reads.py",
        "channels_read_alone or words",
    ),
    "a color has a part inside": Fault(
        ENGINE + "compute/operators.py",
        "jnp.where(for_channels(all_inside), out, out + weight",
        "jnp.where(for_channels(~all_inside), out, out + weight",
        "test_values.py",
        "border",
    ),
    "gradients of a halo are lost on one side": Fault(
        ENGINE + "sharded/exchange.py",
        "own = added_at(own, of_first, 0, dimension)",
        "own = own + 0 * added_at(own, of_first, 0, dimension)",
        "test_cut_reads.py",
        "rows",
    ),
    "a round begins too late": Fault(
        ENGINE + "sharded/routes.py",
        "place = self.place - number * self.capacity",
        "place = self.place - number * (self.capacity + 1)",
        "test_cut_reads.py",
        "rows",
    ),
    "of two devices one sends rows of its wrong end": Fault(
        ENGINE + "sharded/exchange.py",
        "first = jnp.where(edges.is_first,",
        "first = jnp.where(~edges.is_first,",
        "test_cut_reads.py",
        "two_devices",
    ),
    "the last round is left out": Fault(
        ENGINE + "sharded/routes.py",
        "rounds = -(-self.num_samples // self.capacity)",
        "rounds = self.num_samples // self.capacity",
        "test_cut_reads.py",
        "few_parts",
    ),
    "samples of a scan are counted once": Fault(
        ENGINE + "sharded/counted.py",
        "return [*carry, *ys, jnp.sum(counts, dtype=jnp.int32)]",
        "return [*carry, *ys, counts[0]]",
        "test_cut_reads.py",
        "added_up",
    ),
    "a wide filter is too narrow": Fault(
        ENGINE + "compute/filters.py",
        "self.kernel.profile((center - tap - 0.5) / scale)",
        "self.kernel.profile((center - tap - 0.5) / (0.9 * scale))",
        "test_resize.py",
        "filters_of_jax",
    ),
    "an area is shifted by half a texel": Fault(
        ENGINE + "compute/filters.py",
        "low, high = center - 0.5 * self.step, center",
        "low, high = center - 0.4 * self.step, center",
        "test_resize.py",
        "area",
    ),
    "a seam counts the other way": Fault(
        ENGINE + "describe/cube.py",
        "along = jnp.where(self.reversed, size - 1 - along, along)",
        "along = jnp.where(self.reversed, along, size - 1 - along)",
        "test_cubemaps.py",
        "seam or edge",
    ),
    "a step of a direction forgets the major axis": Fault(
        ENGINE + "describe/cube.py",
        "(ds - right * dm) / m * 0.5",
        "ds / m * 0.5",
        "test_cubemaps.py",
        "footprint or deriv",
    ),
    "a sphere's circle is shifted": Fault(
        "jaxtex/splines.py",
        "jnp.roll(values, values.shape[x] // 2, x)",
        "jnp.roll(values, values.shape[x] // 2 + 1, x)",
        "test_sphere.py",
        "spline_passes",
    ),
    "a spline's edge is forgotten": Fault(
        "jaxtex/splines.py",
        "extended = jnp.concatenate([before, values, after], axis)",
        "extended = jnp.concatenate([before * 0, values, after], axis)",
        "test_spline_filter.py",
        "",
    ),
    "a flow that is not finite along y lands": Fault(
        "jaxtex/warp/forward.py", " & jnp.isfinite(dy)", "", "test_warp_forward.py", "finite_lands"
    ),
    "a ray on the other side is a solution": Fault(
        "jaxtex/warp/lens_models.py", " & (a + d > 0)", "", "test_warp_lens.py", "folds"
    ),
    "corners of a grid that are aligned are edges": Fault(
        "jaxtex/warp/conventions/torch_grids.py",
        "cls(0.5, size - 0.5, size) if",
        "cls(0.0, float(size), size) if",
        "test_warp_parity.py",
        "that_of_torch",
    ),
    "centers at whole numbers move by less than a half": Fault(
        "jaxtex/warp/matrices.py", "[a + 0.5 * b for", "[a + 0.4 * b for", "test_warp_peers.py", "of_opencv"
    ),
    "sums lack the precision of the result": Fault(
        "jaxtex/ndimage/arguments.py",
        "*results, *parameters",
        "*parameters",
        "test_ndimage.py",
        "precision_of",
    ),
    "across an odd pole lies one column": Fault(
        "jaxtex/warp/panorama.py", "half + 1, -2", "half, -2", "test_warp_panorama.py", "odd_width"
    ),
    "reads along an infinite side are lost": Fault(
        ENGINE + "describe/footprint.py",
        "offset * limited(d)",
        "offset * d",
        "test_anisotropy.py",
        "infinite_side",
    ),
    "an inverse takes one step less": Fault(
        "jaxtex/warp/flows.py", "fori_loop(1, steps,", "fori_loop(1, steps - 1,", "test_flows.py", "each_step"
    ),
    "a small matrix is not scaled": Fault(
        "jaxtex/warp/matrices.py",
        "jnp.ldexp(element, -exponent)",
        "jnp.ldexp(element, 0 * exponent)",
        "test_warp_calls.py",
        "up_to_a_factor",
    ),
    "numbers are rounded to float32": Fault(
        "jaxtex/warp/options.py",
        "*(() if like is None else (dtype_of(like),))",
        "*()",
        "test_warp_calls.py",
        "precision_of_the_image",
    ),
    "foreign bytes are taken as they are": Fault(
        "jaxtex/_checks/calls.py",
        "bool(cast(Array, leaf).dtype.isnative)",
        "True",
        "test_warp_calls.py",
        "byte_order",
    ),
    "bounds of a weighted limited read lack the weight": Fault(
        ENGINE + "walk/combinations.py",
        "return parts[0].times(place.step.weights()[0])",
        "return Within(weighted(place.step.weights()[0], parts[0].total), parts[0].bounds)",
        "test_feature_pairs.py",
        "limit",
    ),
    "a drawn read forgets its combination": Fault(
        "jaxtex/sampling.py",
        "if combination(sampler) is Combination.LIMITED:",
        "if False:",
        "test_feature_pairs.py",
    ),
    "the type of a sum has the axis that was summed": Fault(
        ENGINE + "rules/primitives.py", "samples[axis] = 1", "pass", "test_result_types.py", "weights"
    ),
    "a color beyond float16 is infinite": Fault(
        HARDWARE + "read.py",
        "jnp.clip(x, -65504, 65504)",
        "x",
        "test_hardware.py",
        "cut_toward_zero",
    ),
    "a signed byte that is gathered has another threshold": Fault(
        HARDWARE + "arithmetic.py",
        "jnp.where(k < 0, 65, 64)",
        "64",
        "test_hardware.py",
        "signed_bytes",
    ),
    "of bounds of the level on hardware the upper one wins": Fault(
        HARDWARE + "footprint.py",
        "lod = jnp.maximum(lod, bound(sampler.min_mipmap_level_clamp))",
        "lod = jnp.maximum(lod, bound(min(sampler.min_mipmap_level_clamp, sampler.max_mipmap_level_clamp)))",
        "test_cuda.py",
        "levels_are_chosen",
    ),
    "a point that no ray reaches has a gradient": Fault(
        "jaxtex/warp/lens_models.py",
        "jnp.where(found, d, 0) for d",
        "d for d",
        "test_warp_lens.py",
        "folds",
    ),
    "an importance that is not finite spoils all pixels": Fault(
        "jaxtex/warp/forward.py",
        "jnp.where(jnp.isfinite(greatest), greatest, 0)",
        "greatest",
        "test_warp_forward.py",
        "importance_that",
    ),
    "an average is differentiated as if its weights were constant": Fault(
        "jaxtex/warp/forward.py",
        "weights / unit, 1)",
        "1.0, 1)",
        "test_warp_forward.py",
        "gradients",
    ),
    "a read without a share spoils the smooth one": Fault(
        "jaxtex/warp/smoothing.py",
        "jnp.where(for_channels(share < 1), first, 0)",
        "first",
        "test_smoothing.py",
        "without_a_share",
    ),
    "a point at the far edge is outside": Fault(
        "jaxtex/nn/pools.py",
        "(position <= size)",
        "(position < size)",
        "test_nn.py",
        "pool",
    ),
    "padding that is not finite counts": Fault(
        "jaxtex/nn/attention.py",
        "jnp.where(padded[..., None, None], jnp.zeros((), features.dtype), features)",
        "features * (~padded)[..., None, None].astype(features.dtype)",
        "test_nn.py",
        "attention",
    ),
    "a negative head is the first, term by term": Fault(
        "jaxtex/nn/weighted.py",
        "last(own, num_heads)[0][..., None, None]",
        "jnp.clip(own, 0, num_heads - 1)[..., None, None]",
        "test_nn_weighted.py",
        "term",
    ),
    "the last of equal samples is the largest": Fault(
        ENGINE + "describe/folds.py", "value > highest", "value >= highest", "test_projections.py", "equal_samples"
    ),
    "a crossing lies before the first sample": Fault(
        ENGINE + "describe/folds.py", "(number > 0)", "(number >= 0)", "test_projections.py", "sphere"
    ),
    "light from before a sample is behind it": Fault(
        ENGINE + "describe/folds.py",
        "behind = behind - share * emitted",
        "behind = behind - 0 * emitted",
        "test_projections.py",
        "derivatives_of_compositing",
    ),
    "a block of samples starts where the first one does": Fault(
        ENGINE + "rules/folds.py",
        "numbers = (start + jnp",
        "numbers = (0 * start + jnp",
        "test_projections.py",
        "blocks_of_samples",
    ),
    "a tangent of a sum leaves out the derivative": Fault(
        ENGINE + "describe/spec.py",
        "axes = differentiated(self.axes, k)\n",
        "axes = self.axes\n",
        "test_rays.py",
        "test_derivatives",
    ),
    "a tangent of a sum mistakes its operands": Fault(
        ENGINE + "describe/spec.py", "self.numbers_of(num_operands - 1).stop", "0", "test_nn_weighted.py"
    ),
    "a real color outside is imaginary too": Fault(
        "jaxtex/ndimage/reads.py",
        "jnp.concatenate([color, jnp.zeros_like(color)])",
        "jnp.concatenate([color, color])",
        "test_ndimage.py",
        "real_number",
    ),
    "a homogeneous matrix is moved by the offset too": Fault(
        "jaxtex/ndimage/transforms.py",
        "return matrix[:ndim, :ndim], matrix[:ndim, ndim]",
        "return matrix[:ndim, :ndim], matrix[:ndim, ndim] + offset",
        "test_ndimage_peers.py",
        "matrices",
    ),
    "large integers are rounded where they are copied": Fault(
        "jaxtex/ndimage/arguments.py",
        "return self.order == 0 and self",
        "return False and self",
        "test_ndimage.py",
        "large_integers",
    ),
    "levels of a cubemap have fewer faces": Fault(
        CUDA + "memory/arrays.py",
        "shrinks = (True, True, not flags & SHAPE_FLAGS)",
        "shrinks = (True, True, not flags & ArrayFlags.Layered)",
        "test_cuda.py",
        "levels_halve",
    ),
    "a single row may be longer than one of its pitches": Fault(
        CUDA + "memory/copies.py",
        'width > min(pitches["spitch"], pitches["dpitch"])',
        'width > max(pitches["spitch"], pitches["dpitch"])',
        "test_cuda_copies.py",
        "refusals",
    ),
    "the bits of minus zero saturate": Fault(
        CUDA + "memory/device_numbers.py",
        "2**31 <= value",
        "2**31 < value",
        "test_cuda_references.py",
        "words_of_floats",
    ),
    "more than eight devices send rows of others": Fault(
        ENGINE + "sharded/routes.py",
        "return rank - (jnp.cumsum(lengths, dtype=jnp.int32) - lengths)[row]",
        "return rank - jnp.cumsum(lengths, dtype=jnp.int32)[row]",
        "test_cut_reads.py",
        "places",
    ),
    "samples of the padding are counted too": Fault(
        ENGINE + "sharded/read.py",
        "jnp.sum(wanted & ~are_available",
        "jnp.sum((wanted | True) & ~are_available",
        "test_cut_reads.py",
        "padding",
    ),
    "sums of cut texels have their precision": Fault(
        ENGINE + "sharded/write.py",
        "total = sum_dtype(texels.dtype) if",
        "total = texels.dtype if",
        "test_cut_writes.py",
        "surfaces",
    ),
    "a tie of cut texels goes to another value": Fault(
        ENGINE + "sharded/write.py",
        "numbers = jnp.where(ties, samples.numbers[:, None], LAST_NUMBER)",
        "numbers = jnp.where(ties, LAST_NUMBER - 1 - samples.numbers[:, None], LAST_NUMBER)",
        "test_cut_writes.py",
        "surfaces",
    ),
    "variables of a loop are set one after the other": Fault(
        ENGINE + "cuda/trace/statements.py",
        "self.define(dtype, value) if value in all_names else value",
        "value",
        "test_cuda_c_rules.py",
        "every_rule",
    ),
    "a loop backward goes forward": Fault(
        ENGINE + "cuda/trace/branches.py",
        "backward if eqn.params['reverse'] else forward",
        "forward",
        "test_cuda_c_rules.py",
        "every_rule",
    ),
    "an index of a caller's is trusted": Fault(
        ENGINE + "cuda/trace/emitter.py",
        "self.keeps_indices = self.keeps_indices, True",
        "self.keeps_indices = self.keeps_indices, False",
        "test_functions_of_callers.py",
        "differentiated",
    ),
    "a function of the library without a kernel is not mentioned": Fault(
        ENGINE + "forms/choice.py",
        'warnings.warn(f"{NO_RULE} {reason}. {REPORT}.", stacklevel=1)',
        "pass",
        "test_functions_of_callers.py",
        "library",
    ),
    "pairs of texels are added at odd places": Fault(
        ENGINE + "cuda/scatter/window_functions.py",
        "in (1, 2) and self.begins_even",
        "in (1, 2)",
        "test_forms.py",
        "few and far",
    ),
    "weights do not enter the units of sums": Fault(
        ENGINE + "compute/texel_sums.py",
        "for factor in factors:",
        "for factor in ():",
        "test_adjoint.py",
        "weighted",
    ),
    "a block has no effect on a GPU": Fault(
        ENGINE + "forms/choice.py",
        'params["spec"] = params["spec"].on_gpu()',
        "pass",
        "test_adjoint.py",
        "asks",
    ),
    "a sampler does not win over a block": Fault(
        ENGINE + "describe/spec.py",
        "return self.replace(deterministic=deterministic, deterministic_on_gpus=deterministic)",
        "return self.replace(deterministic=deterministic)",
        "test_adjoint.py",
        "asks",
    ),
    "a half of two colors is another one": Fault(
        BLOCKS + "bc1_to_bc5.py", "(first + last) * 33 >> 3", "(first + last) * 32 >> 3", "test_blocks.py", "bc1"
    ),
    "weights of numbers of 16 bits are exact": Fault(
        BLOCKS + "bc1_to_bc5.py",
        "SEVENTHS_OF_16_BITS, FIFTHS_OF_16_BITS = (36, 72, 144)",
        "SEVENTHS_OF_16_BITS, FIFTHS_OF_16_BITS = (37, 73, 147)",
        "test_blocks.py",
        "bc4",
    ),
    "an anchor has all bits": Fault(
        BLOCKS + "bc6h_bc7.py", 'ANCHOR_OF_TWO = "ffff', 'ANCHOR_OF_TWO = "fffe', "test_blocks.py", "bc7"
    ),
    "a difference of a half is not extended": Fault(
        BLOCKS + "bc6h_bc7.py",
        "first + _extended(others, width) &",
        "first + others &",
        "test_blocks.py",
        "bc6h",
    ),
    "blocks of an image lie column by column": Fault(
        BLOCKS + "formats.py",
        "jnp.swapaxes(texels, -4, -3)",
        "jnp.swapaxes(texels, -4, -2)",
        "test_fuzz_memory.py",
        "blocks",
    ),
    "a box of blocks is rounded down": Fault(
        CUDA + "memory/copies3d.py",
        "(blocks_along(n, max(sides, default=1)) for n in (width, height))",
        "(n // max(sides, default=1) for n in (width, height))",
        "test_fuzz_memory.py",
        "blocks",
    ),
    "a view of blocks may have another size": Fault(
        CUDA + "textures/resources.py",
        "if sizes != tuple(viewed_extent(memory, desc)):",
        "if sizes[0] != viewed_extent(memory, desc)[0]:",
        "test_fuzz_memory.py",
        "blocks",
    ),
    "a view is read as its own format says": Fault(
        CUDA + "textures/descriptors.py",
        "if viewed == held or format_class(viewed) == format_class(held) == SMALL:",
        "if viewed == held or format_class(viewed) == SMALL:",
        "test_formats.py",
        "views",
    ),
    "codes of ten bits are shifted alone": Fault(
        BLOCKS + "bits.py", "codes[:, :3] << 6 | codes[:, :3] >> 4", "codes[:, :3] << 6", "test_formats.py", "packed"
    ),
    "texels of ten bits always have sixteen": Fault(
        CUDA + "textures/texture_functions.py",
        "texel if blends else of_codes(t, texel)",
        "texel",
        "test_formats.py",
        "packed",
    ),
    "an alpha of two bits is rounded up": Fault(
        CUDA + "ptx.py", "(codes[..., 3:] >> 6) + 2", "(codes[..., 3:] >> 6) + 3", "test_formats.py", "stored"
    ),
    "chroma starts with luma": Fault(
        CUDA + "memory/arrays.py",
        "array.texels[..., height:, :, :]",
        "array.texels[..., : height // 2, :, :]",
        "test_cuda_blocks.py",
        "planes",
    ),
}
