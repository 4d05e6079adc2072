"""Checks of arguments. An error names the function, the argument, the value, the expectation, and a remedy."""
