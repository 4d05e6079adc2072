"""What leans on JAX itself: its versions, typed `jit`, primitives, barriers, branches and explicit indices."""
