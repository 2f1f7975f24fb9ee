"""Action distributions, parameterized by network outputs."""

from typing import TYPE_CHECKING

from repertory.components.config import lazy_imports

if TYPE_CHECKING:
  from repertory.components.distributions.categorical import (
    Categorical,
    MultiCategorical,
  )
  from repertory.components.distributions.distribution import Distribution
  from repertory.components.distributions.factored import (
    Factored,
    make_distribution,
  )
  from repertory.components.distributions.gaussian import DiagonalGaussian

__all__ = [
  'Categorical',
  'DiagonalGaussian',
  'Distribution',
  'Factored',
  'MultiCategorical',
  'make_distribution',
]

__getattr__, __dir__ = lazy_imports.modules(__name__)
