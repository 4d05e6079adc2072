"""What a user types: commands, their options and values, help and completion. Nothing here needs JAX."""
