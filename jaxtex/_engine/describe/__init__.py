"""What a read is before it runs: axes, operands, grids, levels and the plan of a call. Nothing here computes texels."""
