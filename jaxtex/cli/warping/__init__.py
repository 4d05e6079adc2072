"""One array of pixels to another, on a device."""
