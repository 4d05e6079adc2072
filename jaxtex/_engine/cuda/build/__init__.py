"""From CUDA C++ to a part of a program: generated headers, arrays by their roles, NVRTC, and the launch."""
