"""Breakout of gymnax and the network of PureJaxRL, for Repertory's runs."""

from typing import NamedTuple

import numpy as np
import sonnet as snt
import tensorflow as tf
from dm_env import specs

from repertory.components import networks
from repertory.environments.tensor import minatar

_MAX_STEPS = 1_000  # Time limit of gymnax, which counts as termination.


class _Core(NamedTuple):
  game: minatar.game.GameCore
  num_steps: tf.Tensor  # Steps of this episode, int32 `[B]`.


class Breakout(minatar.Breakout):
  """MinAtar's Breakout as in gymnax, with flat boards, float32 `[400]`."""

  def __init__(self):
    super().__init__(sticky_actions=0.0, full_actions=False)

  def observation_spec(self):
    size = int(np.prod(super().observation_spec().shape))
    return specs.BoundedArray((size,), np.float32, 0, 1, 'board')

  def start(self, counters, before):
    game, counters = super().start(counters, before and before.game)
    return _Core(game, tf.zeros(counters.shape, tf.int32)), counters

  def advance(self, core, action, counters):
    result = super().advance(core.game, action, counters)
    num_steps = core.num_steps + 1
    return result._replace(
      core=_Core(result.core, num_steps),
      terminated=result.terminated | (num_steps >= _MAX_STEPS),
    )

  def observe(self, core):
    boards = super().observe(core.game)
    return tf.reshape(boards, [-1, *self.observation_spec().shape])


def make_relu_network(spec):
  """Creates separate ReLU networks of 64-64 for policy and value.

  Args:
    spec: Environment spec with vectors and one discrete action.
  """
  network = networks.SequenceNetwork(
    networks.ObservationTorso(spec.observations, ()),
    networks.make_core('none', 0),
    _Head(_make_mlp(spec.actions.num_values, 0.01), _make_mlp(1, 1.0)),
  )
  network.create_variables(spec.observations)
  return network


class _Head(snt.Module):
  """Actor-critic head of two networks."""

  def __init__(self, policy, value):
    super().__init__(name='actor_critic_head')
    self._policy, self._value = policy, value

  def __call__(self, features):
    value = tf.squeeze(self._value(features), axis=-1)
    return networks.ActorCriticOutput(self._policy(features), value)


def _make_mlp(size, gain):
  """Creates an MLP with orthogonal initial weights, of `gain` in the last."""
  hidden = snt.nets.MLP(
    (64, 64),
    w_init=snt.initializers.Orthogonal(2**0.5),
    activate_final=True,
  )
  return snt.Sequential(
    [hidden, snt.Linear(size, w_init=snt.initializers.Orthogonal(gain))]
  )
