"""Builders that wrap builders: they give any agent other rewards."""
