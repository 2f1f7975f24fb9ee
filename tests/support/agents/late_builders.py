"""Builders of DQN whose variables are created too late."""

import sonnet as snt
import tensorflow as tf

from repertory.agents import dqn
from repertory.agents.dqn import learning

# A batch of features for the head, of any size.
_FEATURES = (1, 8)


class _Update(learning.DQNUpdate):
  def __call__(self, sample):
    self._network.reward_head(tf.zeros(_FEATURES))
    return super().__call__(sample)


class LateHead(dqn.DQNBuilder):
  """Builder of a network with a head that only the update calls."""

  def make_network(self, spec):
    network = super().make_network(spec)
    network.reward_head = snt.Linear(1, name='reward_head')
    return network

  def make_update(self, network, spec):
    return _Update(network, self.make_network(spec), self.config)


class LateInPolicy(dqn.DQNBuilder):
  """Builder of a policy with a layer that is never trained."""

  def make_policy(self, network, acting):
    layer = snt.Linear(acting.spec.actions.num_values, name='reward_head')
    return super().make_policy(lambda x: layer(network(x)), acting)


class MadeByUpdate(LateHead):
  """Builder whose update creates the head, so that policies lack it."""

  def make_update(self, network, spec):
    update = super().make_update(network, spec)
    network.reward_head(tf.zeros(_FEATURES))
    return update
