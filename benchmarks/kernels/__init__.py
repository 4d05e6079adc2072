"""Programs that people write around reads, each a function of one sample, beside CUDA kernels and other libraries."""
