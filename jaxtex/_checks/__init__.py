"""Checks of what callers pass. An error names the function, the argument, what came, what was expected, the remedy."""
