"""What files say of a picture beside its pixels: read from one format, edited, and kept in another."""
