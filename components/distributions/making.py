"""Which distribution fits which actions."""

import tree

from repertory.components import action_parts, specs, types
from repertory.components.distributions import (
  categorical,
  distribution,
  factored,
  gaussian,
)


def make_distribution(action_spec: types.Nest) -> distribution.Distribution:
  """Makes the distribution for an environment's actions.

  Args:
    action_spec: A `DiscreteArray`, an array of integers with bounds or one of
      floats; or a nest of such, whose parts are drawn independently.

  Raises:
    ValueError: Naming the part that is none of these.
  """
  made = [_make_part(part) for part in action_parts.parts_of(action_spec)]
  if not tree.is_nested(action_spec):
    return made[0]
  return factored.Factored(tree.unflatten_as(action_spec, made))


def _make_part(part: action_parts.Part) -> distribution.Distribution:
  spec = part.spec
  if action_parts.is_continuous(spec):
    return gaussian.DiagonalGaussian(spec)
  if action_parts.is_discrete(spec):
    if isinstance(spec, specs.DiscreteArray):
      return categorical.Categorical(spec)
    return categorical.MultiCategorical(spec)
  raise ValueError(
    f'{part.name} must be a DiscreteArray, an array of integers with bounds or '
    f'one of floats, none of them empty; got {spec!r}.'
  )
