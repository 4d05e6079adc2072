"""Textures that are sharded over devices: which device stores which texels, what devices exchange and compute."""
