"""From kernel to program: generated headers, arrays by role, compilation by NVRTC, and the launch."""
