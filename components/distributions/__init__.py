"""Action distributions, parameterized by network outputs."""

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
