"""What the machine does to a run: signals, output, memory, time."""
