"""What a run is: checked before it starts, new or resumed."""

from repertory.components import lazy_imports

__getattr__, __dir__ = lazy_imports.modules(__name__)
