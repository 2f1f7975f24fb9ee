"""Trained agents: they are read from the directory of a run, and act."""

from repertory.components import lazy_imports

__getattr__, __dir__ = lazy_imports.modules(__name__)
