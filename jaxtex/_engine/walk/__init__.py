"""From coordinates to texels: taps and weights of one axis, the walk over all axes, and how taps become one value."""
