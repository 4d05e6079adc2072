"""The division of samples, their channels and their operands among the threads of a kernel."""
