"""The way from coordinates to texels: taps and weights of one axis, the walk over all axes, the combination."""
