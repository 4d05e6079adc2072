"""How fast reads and gradients are, beside other libraries, in one run on one device."""

import os

# Before JAX starts: the other libraries need room on the same GPU, where JAX by default takes three quarters.
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
