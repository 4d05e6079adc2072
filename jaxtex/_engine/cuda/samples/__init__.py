"""How samples and their operands are divided among the threads of a kernel."""
