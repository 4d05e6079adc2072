"""Runs over one file or many: which files are read, what is done to each, and where the results go."""
