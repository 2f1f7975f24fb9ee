"""What agents are made of: each part has a module or package."""

from repertory.components import lazy_imports

__getattr__, __dir__ = lazy_imports.modules(__name__)
