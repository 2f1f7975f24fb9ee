"""From features to what an agent acts by."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf

# Of the policy's first weights, as a variance.
_POLICY_SCALE = 1e-4


class DuelingHead(snt.Module):
  """Computes q(s, a) = v(s) + A(s, a) − mean_a A(s, a).

  See https://arxiv.org/abs/1511.06581, equation 9.
  """

  def __init__(
    self,
    num_actions: int,
    hidden_sizes: Sequence[int] = (),
    name: str = 'dueling_head',
  ):
    """Makes a stream for the state's value and one for the advantages.

    Args:
      num_actions: A.
      hidden_sizes: Layers of each stream before its output.
    """
    super().__init__(name=name)
    self._value = snt.nets.MLP([*hidden_sizes, 1], name='value')
    self._advantage = snt.nets.MLP(
      [*hidden_sizes, num_actions], name='advantage'
    )

  def __call__(self, features: tf.Tensor) -> tf.Tensor:
    """Maps features `[B, D]` to action values `[B, A]`."""
    value = self._value(features)  # [B, 1]
    advantage = self._advantage(features)  # [B, A]
    mean = tf.reduce_mean(advantage, axis=-1, keepdims=True)  # [B, 1]
    return value + advantage - mean  # [B, A]


def make_value_head(num_actions: int, dueling: bool) -> snt.Module:
  """Makes a head that maps features `[B, D]` to action values `[B, A]`.

  Args:
    num_actions: A.
    dueling: Whether it has a stream for the state's value.
  """
  if dueling:
    return DuelingHead(num_actions)
  return snt.Linear(num_actions, name='head')


class ActorCriticOutput(NamedTuple):
  """What an actor-critic network says of observations.

  Attributes:
    parameters: What the distribution over actions is made of, `[..., P]`.
    value: The state's value, `[...]`.
  """

  parameters: tf.Tensor
  value: tf.Tensor


class ActorCriticHead(snt.Module):
  """Two streams: for the policy's distribution and for the value.

  The policy's last layer is small at first, so that an untrained policy prefers
  no action (https://arxiv.org/abs/2006.05990, section 3.2). So are, for the
  hidden layers, tanh and orthogonal weights recommended there.
  """

  def __init__(
    self,
    num_parameters: int,
    hidden_sizes: Sequence[int] = (),
    name: str = 'actor_critic_head',
  ):
    """Makes the layers.

    Args:
      num_parameters: P.
      hidden_sizes: Layers of each stream before its output, a tanh after each.
    """
    super().__init__(name=name)
    self._policy_layers = _make_layers(hidden_sizes, 'policy_layers')
    self._value_layers = _make_layers(hidden_sizes, 'value_layers')
    self._policy = snt.Linear(
      num_parameters,
      w_init=snt.initializers.VarianceScaling(_POLICY_SCALE),
      name='policy',
    )
    self._value = snt.Linear(1, name='value')

  def __call__(self, features: tf.Tensor) -> ActorCriticOutput:
    """Maps features `[B, D]` to parameters `[B, P]` and values `[B]`."""
    parameters = self._policy(self._policy_layers(features))  # [B, P]
    value = self._value(self._value_layers(features))  # [B, 1]
    return ActorCriticOutput(parameters, tf.squeeze(value, axis=-1))


def _make_layers(sizes: Sequence[int], name: str) -> snt.nets.MLP:
  return snt.nets.MLP(
    sizes,
    w_init=snt.initializers.Orthogonal(math.sqrt(2)),
    activation=tf.tanh,
    activate_final=True,
    name=name,
  )
