"""Shared parts of agents that learn from unrolls."""
