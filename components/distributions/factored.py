"""Factored distributions over nested actions, and the choice by specs."""

import tensorflow as tf
import tree

from repertory.components import specs, types
from repertory.components.actions import action_parts
from repertory.components.distributions import (
  categorical,
  distribution,
  gaussian,
)


class Factored(distribution.Distribution):
  """Product of independent distributions, p(a) = Π_i p_i(a_i).

  Log-probabilities and entropies are sums over the parts. The parameters of all
  parts are concatenated in the order of `tree.flatten`, which sorts mappings by
  key.
  """

  def __init__(self, parts: types.Nest):
    """Takes a nest of distributions with the structure of the actions."""
    self._structure = tree.map_structure(lambda part: None, parts)
    self._parts: list[distribution.Distribution] = tree.flatten(parts)
    self._sizes = [part.num_parameters for part in self._parts]
    self.num_parameters = sum(self._sizes)
    self.sample_spec = self._join([part.sample_spec for part in self._parts])
    self.kl_parts = tuple(
      dict.fromkeys(name for part in self._parts for name in part.kl_parts)
    )

  def sample(self, parameters, counters):
    drawn = []
    for part, own in self._with_parameters(parameters):
      sample, counters = part.sample(own, counters)
      drawn.append(sample)
    return self._join(drawn), counters

  def mode(self, parameters):
    pairs = self._with_parameters(parameters)
    return self._join([part.mode(own) for part, own in pairs])

  def log_prob(self, parameters, sample):
    parts = zip(self._with_parameters(parameters), self._leaves(sample))
    return tf.add_n([part.log_prob(own, leaf) for (part, own), leaf in parts])

  def entropy(self, parameters):
    pairs = self._with_parameters(parameters)
    return tf.add_n([part.entropy(own) for part, own in pairs])

  def kl(self, parameters, others):
    terms = {name: [] for name in self.kl_parts}
    pairs = zip(
      self._with_parameters(parameters), self._with_parameters(others)
    )
    for (part, own), (_, other) in pairs:
      for name, divergence in part.kl(own, other).items():
        terms[name].append(divergence)
    return {name: tf.add_n(found) for name, found in terms.items()}

  def to_action(self, sample):
    parts = zip(self._parts, self._leaves(sample))
    return self._join([part.to_action(leaf) for part, leaf in parts])

  def _with_parameters(
    self, parameters: tf.Tensor
  ) -> list[tuple[distribution.Distribution, tf.Tensor]]:
    """Returns the parts, each with its parameters `[..., P_i]`."""
    return list(zip(self._parts, tf.split(parameters, self._sizes, axis=-1)))

  def _leaves(self, nest: types.Nest) -> list[tf.Tensor]:
    # Lists may have become tuples.
    return tree.flatten_up_to(self._structure, nest, check_types=False)

  def _join(self, leaves: list) -> types.Nest:
    return tree.unflatten_as(self._structure, leaves)


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
  return Factored(tree.unflatten_as(action_spec, made))


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
