"""Reinforcement-learning building blocks around a replay service."""

__version__ = '0.1.0'
