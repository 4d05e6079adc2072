"""From CUDA C to a part of a program: templates, NVRTC, and the launch."""
