"""From a function that JAX traces to the statements of one thread in CUDA C. Nothing here knows what a texture is."""
