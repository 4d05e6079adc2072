"""The samplers of these functions, which read linearly, as their references do."""

# pyright: strict, reportUnknownMemberType=false

from ..sampler import Sampler

# Zero outside, of coordinates from 0 to 1 and in pixels.
ZEROS = Sampler(address_mode="border")
ZEROS_IN_PIXELS = Sampler(address_mode="border", normalized_coords=False)
# The texel at the edge outside, in pixels.
EDGE_IN_PIXELS = Sampler(address_mode="clamp", normalized_coords=False)
