"""Builder of BC."""

import dataclasses

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import exploration
from repertory.agents.bc import config as bc_config
from repertory.agents.bc import learning
from repertory.agents.interface import builder
from repertory.components import adders, interfaces, networks, policies
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)
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
    torso = networks.ObservationTorso(
      spec.observations, self.config.hidden_sizes, self.config.image_torso
    )
    network = snt.Sequential([torso, snt.Linear(size, name='head'), *layers])
    networks.create_variables(network, spec.observations)
    return network

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
    return learning.BCUpdate(network, spec, self.config)

  def experience(self, spec, num_environments):
    items = adders.Transitions(1, self.config.discount)
    return experience_lib.Experience.offline(
      items, items.signature(spec), self.config.batch_size
    )
