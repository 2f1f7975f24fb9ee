"""Operating-system support for runs: signals, output, processes and memory."""
