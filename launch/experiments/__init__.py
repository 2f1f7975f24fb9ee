"""Descriptions of runs: experiments, sessions, names, directories, policies."""

from repertory.components.config import lazy_imports

__getattr__, __dir__ = lazy_imports.modules(__name__)
