"""Textures that are cut over devices: which device stores which texels, what devices exchange and compute."""
