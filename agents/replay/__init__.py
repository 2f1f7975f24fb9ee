"""Shared parts of agents that replay transitions."""
