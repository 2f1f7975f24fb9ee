"""Factory of action distributions."""

import tree

from repertory.components import specs, types
from repertory.components.actions import action_parts
from repertory.components.distributions import (
  categorical,
  distribution,
  factored,
  gaussian,
)


def make_distribution(action_spec: types.Nest) -> distribution.Distribution:
  """Creates the distribution for an environment's actions.

  Args:
    action_spec: A `DiscreteArray`, a bounded array of integers or an array of
      floats; or a nest of these, whose parts are sampled independently.

  Raises:
    ValueError: If a part of the actions is none of these; it names the part.
  """
  made = [_make_part(part) for part in action_parts.parts_of(action_spec)]
  if not tree.is_nested(action_spec):
    return made[0]
  return factored.Factored(tree.unflatten_as(action_spec, made))


def _make_part(part: action_parts.ActionPart) -> distribution.Distribution:
  spec = part.spec
  if action_parts.is_continuous(spec):
    return gaussian.DiagonalGaussian(spec)
  if action_parts.is_discrete(spec):
    if isinstance(spec, specs.DiscreteArray):
      return categorical.Categorical(spec)
    return categorical.MultiCategorical(spec)
  raise ValueError(
    f'{part.name} must be a DiscreteArray, a bounded array of integers or an '
    f'array of floats, and not empty, got {spec!r}.'
  )
