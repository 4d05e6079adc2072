"""The translation of functions that JAX traces to CUDA C for one thread. Nothing here knows what a texture is."""
