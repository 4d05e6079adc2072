#pragma once
// The sizes and switches of one kernel, by gather_source.py.
#include "trace/scalars.cuh"

constexpr int threads = 32;  // of a block
constexpr int images = 1;
constexpr int numbers = 24;  // of a view
