"""The description of a read before it runs: axes, operands, grids, levels, and the plan of a call."""
