"""Transforms: from points of the output to points of the input."""
