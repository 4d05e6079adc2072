"""Extensions of JAX: its versions, typed `jit`, primitives, barriers, branches and explicit indices."""
