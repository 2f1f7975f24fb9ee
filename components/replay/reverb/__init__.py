"""Replay tables of a Reverb server: the only modules that import Reverb."""
