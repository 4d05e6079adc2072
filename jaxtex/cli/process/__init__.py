"""The process around a command: exit codes, signals, and what is printed."""
