"""Small environments with a known optimum."""

from repertory.components.config import lazy_imports

__getattr__, __dir__ = lazy_imports.modules(__name__)
