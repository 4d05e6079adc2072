"""The texture unit of a GPU, by the CUDA driver: arrays with blocks in memory, texture objects, and their lifetimes."""
