"""The way of a kernel into a program: generated headers, its arrays by role, compilation by NVRTC, and the launch."""
