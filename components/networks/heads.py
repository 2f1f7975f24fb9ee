"""Network heads: action values, policy parameters, and state values."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import sonnet as snt
import tensorflow as tf

from repertory.components import actions, specs
from repertory.components.actions import action_masks
from repertory.components.networks import torsos
from repertory.components.runtime import numpy_functions

# Variance scale of the policy's initial weights.
_POLICY_SCALE = 1e-4
# Smallest standard deviation, which keeps KL divergences finite.
_MIN_SCALE = 1e-4


class DuelingHead(snt.Module):
  """Dueling head, q(s, a) = v(s) + A(s, a) − mean_a A(s, a).

  See https://arxiv.org/abs/1511.06581, equation 9.
  """

  def __init__(self, num_actions: int, hidden_sizes: Sequence[int] = ()):
    """Creates streams of hidden layers for values and A advantages."""
    super().__init__(name='dueling_head')
    self._num_actions = num_actions
    sizes = [*hidden_sizes, num_actions]
    self._value = snt.nets.MLP([*hidden_sizes, 1], name='value')
    self._advantage = snt.nets.MLP(sizes, name='advantage')

  def __call__(
    self, features: tf.Tensor, mask: tf.Tensor | None = None
  ) -> tf.Tensor:
    """Maps features `[B, D]` to action values `[B, A]`.

    With action masks `[B, A]`, the mean is that of allowed actions.
    """
    value = self._value(features)  # [B, 1]
    advantage = self._advantage(features)  # [B, A]
    return value + advantage - mean_advantage(advantage, mask)  # [B, A]

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version, see `numpy_functions`."""
    value_of = numpy_functions.forward(self._value, weights)
    advantage_of = numpy_functions.forward(self._advantage, weights)
    num_actions = np.full([1], self._num_actions, np.float32)

    def call(features, mask=None):
      advantage = advantage_of(features)
      total, number = advantage, num_actions
      if mask is not None:
        total = np.where(mask, advantage, np.float32(0))
        number = np.add.reduce(mask, -1, np.float32, keepdims=True)
      mean = np.add.reduce(total, -1, keepdims=True) / number
      return value_of(features) + advantage - mean

    return call


def mean_advantage(advantage: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
  """Returns means `[B, 1, ...]` of advantages `[B, A, ...]` over actions.

  With action masks `[B, A]`, they are those of allowed actions.
  """
  if mask is None:
    return tf.reduce_mean(advantage, axis=1, keepdims=True)
  masked = action_masks.apply(advantage, mask)
  return action_masks.mean_allowed(masked, axis=1)[:, None]


def make_value_head(num_actions: int, dueling: bool) -> snt.Module:
  """Creates a head, dueling or not, from features `[B, D]` to `[B, A]`."""
  if dueling:
    return DuelingHead(num_actions)
  return snt.Linear(num_actions, name='head')


def make_policy_head(num_parameters: int, name: str = 'head') -> snt.Linear:
  """Creates a policy head that maps features `[B, D]` to parameters `[B, P]`.

  Initial weights are small, so that an untrained policy prefers no action.
  """
  return snt.Linear(
    num_parameters,
    w_init=snt.initializers.VarianceScaling(_POLICY_SCALE),
    name=name,
  )


class GaussianHead(snt.Module):
  """Gaussian policy head with means μ and standard deviations σ."""

  def __init__(self, size: int, initial_scale: float):
    """Creates the layer for D action dimensions and initial σ > 0."""
    super().__init__(name='gaussian_head')
    self._linear = make_policy_head(2 * size)
    # softplus(shift) = initial_scale, for large ones too.
    self._shift = initial_scale + math.log(-math.expm1(-initial_scale))

  def __call__(self, features: tf.Tensor) -> tf.Tensor:
    """Maps features `[B, F]` to concatenated μ and σ, `[B, 2 D]`."""
    mean, raw = tf.split(self._linear(features), 2, axis=-1)  # [B, D]
    scale = tf.nn.softplus(raw + self._shift) + _MIN_SCALE
    return tf.concat([mean, scale], axis=-1)


class ActorCriticOutput(NamedTuple):
  """Outputs of an actor-critic network.

  Attributes:
    parameters: Parameters of the action distribution, `[..., P]`.
    value: State values, `[...]`.
  """

  parameters: tf.Tensor
  value: tf.Tensor


class ActorCriticHead(snt.Module):
  """Actor-critic head with separate streams for policy and value.

  The policy's last layer has small initial weights, hidden layers have tanh and
  orthogonal ones: https://arxiv.org/abs/2006.05990, section 3.2.
  """

  def __init__(self, num_parameters: int, hidden_sizes: Sequence[int] = ()):
    """Creates streams of tanh layers for P parameters and for values."""
    super().__init__(name='actor_critic_head')
    self._policy_layers = _make_layers(hidden_sizes, 'policy_layers')
    self._value_layers = _make_layers(hidden_sizes, 'value_layers')
    self._policy = make_policy_head(num_parameters, 'policy')
    self._value = snt.Linear(1, name='value')

  def __call__(self, features: tf.Tensor) -> ActorCriticOutput:
    """Maps features `[B, D]` to parameters `[B, P]` and values `[B]`."""
    parameters = self._policy(self._policy_layers(features))  # [B, P]
    value = self._value(self._value_layers(features))  # [B, 1]
    return ActorCriticOutput(parameters, tf.squeeze(value, axis=-1))

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version of the policy stream, without the values."""
    layers = numpy_functions.forward(self._policy_layers, weights)
    policy = numpy_functions.forward(self._policy, weights)
    return lambda features: policy(layers(features))


def _make_layers(sizes: Sequence[int], name: str) -> snt.nets.MLP:
  return snt.nets.MLP(
    sizes,
    w_init=snt.initializers.Orthogonal(math.sqrt(2)),
    activation=tf.tanh,
    activate_final=True,
    name=name,
  )


class BoundedGaussianHead(snt.Module):
  """Head that parameterizes a `BoundedGaussian`.

  Means depend on the features; standard deviations are variables, initially 1.
  """

  def __init__(self, size: int):
    super().__init__(name='head')
    self._mean = snt.Linear(size, name='mean')
    self._log_scale = tf.Variable(tf.zeros([size]), name='log_scale')

  def __call__(self, features: tf.Tensor) -> tf.Tensor:
    """Maps features `[B, F]` to parameters `[B, 2 D]`."""
    mean = self._mean(features)  # [B, D]
    log_scale = self._log_scale + tf.zeros_like(mean)  # [B, D]
    return tf.concat([mean, log_scale], axis=-1)


def make_bounded_gaussian_network(
  spec: specs.EnvironmentSpec,
  hidden_sizes: Sequence[int],
  image_torso: str = 'auto',
) -> snt.Module:
  """Creates a policy network that maps observations to parameters.

  Raises:
    ValueError: If actions are not bounded floats, or observations unsupported.
  """
  size = actions.action_scaling.ActionScaling(spec.actions).size
  return torsos.make_sequential(
    spec.observations, hidden_sizes, image_torso, BoundedGaussianHead(size)
  )
