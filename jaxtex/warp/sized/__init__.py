"""Warps of images of many sizes by few programs, tile by tile: sizes are operands of the programs."""
