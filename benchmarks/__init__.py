"""How fast reads and gradients are, beside other libraries, in one run on one device."""
