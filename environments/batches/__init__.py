"""Batches of environments that step together."""
