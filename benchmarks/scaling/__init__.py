"""`python -m benchmarks.scaling`: the same work on one device and on several."""
