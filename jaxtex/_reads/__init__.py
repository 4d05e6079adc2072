"""Whole reads in either arithmetic, as compiled functions of a texture and the arrays of a call."""
