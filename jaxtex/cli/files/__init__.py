"""Image files: which are read, how they are decoded and encoded, and how they are replaced."""
