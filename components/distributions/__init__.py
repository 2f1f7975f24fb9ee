"""Action distributions, parameterized by network outputs."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.distributions.categorical import *
  from repertory.components.distributions.distribution import *
  from repertory.components.distributions.factored import *
  from repertory.components.distributions.gaussian import *

__all__ = [
  'BoundedGaussian', 'Categorical', 'DiagonalGaussian', 'Distribution',
  'Factored', 'MultiCategorical', 'SquashedGaussian', 'make_distribution',
]  # fmt: skip

__getattr__, __dir__ = lazy_imports.modules(__name__)
