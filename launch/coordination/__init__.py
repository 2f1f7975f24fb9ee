"""Global state of a run: counters, phases, node registry, logs, callbacks."""
