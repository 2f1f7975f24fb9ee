"""Casts and checks of actions and timesteps."""
