"""Shared parts of actor-critic agents."""
