"""The kernel in which texels look for their samples."""
