"""Reward models: builders that relabel the rewards of any agent."""
