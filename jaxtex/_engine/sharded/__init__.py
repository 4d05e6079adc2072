"""Reads and writes of textures that are sharded over devices: partition, exchange, and the work of each device."""
