"""Image files to pixels and metadata, and back."""
