"""Builder and update of BC."""

import dataclasses

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration
from repertory.agents.bc import config as bc_config
from repertory.agents.interface import builder
from repertory.components import (
  adders,
  interfaces,
  learners,
  losses,
  networks,
  policies,
  specs,
  types,
)
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)
from repertory.components.runtime import data_parallel
from repertory.components.transports import experience as experience_lib


class BCBuilder(builder.Builder):
  """Behavior cloning, offline.

  Discrete actions are learned by classification, continuous ones by regression.
  The policy is deterministic, in evaluation or not.
  """

  uses_rewards = False
  config: bc_config.BCConfig

  def make_network(self, spec):
    # Logits `[B, A]` of discrete actions, or actions in [−1, 1], `[B, D]`.
    if not action_parts.are_continuous(spec.actions):
      size = discrete_actions.DiscreteActions(spec.actions).num_actions
      layers = []
    else:
      size = action_scaling.ActionScaling(spec.actions).size
      layers = [tf.tanh]
    return networks.make_sequential(
      spec.observations,
      self.config.hidden_sizes,
      self.config.image_torso,
      snt.Linear(size, name='head'),
      *layers,
    )

  def make_policy(self, network, acting) -> interfaces.Policy:
    if not action_parts.are_continuous(acting.spec.actions):
      actions = discrete_actions.DiscreteActions(acting.spec.actions)
      return policies.EpsilonGreedyPolicy(
        network,
        [0.0] * acting.num_environments,
        acting.seed,
        to_action=actions.to_action,
      )
    greedy = dataclasses.replace(acting, evaluation=True)
    return exploration.make_deterministic_policy(network, 0.0, greedy)

  def make_update(self, network, spec):
    return BCUpdate(network, spec, self.config)

  def experience(self, spec, num_environments):
    items = adders.Transitions(1, self.config.discount)
    return experience_lib.Experience.offline(
      items, items.signature(spec), self.config.batch_size
    )


class BCUpdate(interfaces.Update):
  """Maximizes the likelihood of the data set's actions.

  The network maps observations `[B, ...]` to logits `[B, A]` of discrete
  actions, or to continuous actions in [−1, 1], `[B, D]`.
  """

  def __init__(
    self,
    network: snt.Module,
    spec: specs.EnvironmentSpec,
    config: bc_config.BCConfig,
  ):
    super().__init__(network)
    self._network = network
    if action_parts.are_continuous(spec.actions):
      self._loss = losses.squared_cloning_loss
      self._scaling = action_scaling.ActionScaling(spec.actions)
    else:
      self._loss = losses.cross_entropy_cloning_loss
      self._scaling = discrete_actions.DiscreteActions(spec.actions)
    self._optimizer = learners.ClippedAdam.from_config(network, config)

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    data = sample.data
    network = data_parallel.split_rows(self._network)
    with tf.GradientTape() as tape:
      outputs = network(data.observation)
      loss = self._loss(outputs, self._scaling.from_action(data.action))
    norm = self._optimizer.minimize(tape, loss)
    return interfaces.UpdateResult({'loss': loss, 'gradient_norm': norm})
