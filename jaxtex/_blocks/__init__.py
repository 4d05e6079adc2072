"""Block formats: a block of 8 or 16 bytes holds 4 by 4 texels, and one of 4 bytes a single texel."""
