"""Texels of block-compressed formats: a block of 8 or 16 bytes holds 4 by 4 texels."""
