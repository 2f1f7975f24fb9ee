"""Action distributions, parameterized by network outputs."""

from repertory.components.distributions.categorical import (
  Categorical,
  MultiCategorical,
)
from repertory.components.distributions.distribution import Distribution
from repertory.components.distributions.factored import Factored
from repertory.components.distributions.gaussian import DiagonalGaussian
from repertory.components.distributions.making import make_distribution

__all__ = [
  'Categorical',
  'DiagonalGaussian',
  'Distribution',
  'Factored',
  'MultiCategorical',
  'make_distribution',
]
