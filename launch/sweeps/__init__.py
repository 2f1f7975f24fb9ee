"""Many runs of `train`, of all combinations of settings or of a search."""

from repertory.components import lazy_imports

__getattr__, __dir__ = lazy_imports.modules(__name__)
