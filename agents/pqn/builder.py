"""Builder of PQN."""

import sonnet as snt

from repertory.agents.actor_critic import exploration
from repertory.agents.pqn import config as pqn_config
from repertory.agents.pqn import learning
from repertory.agents.unrolls import unroll_queue
from repertory.components import interfaces, networks, policies, types
from repertory.components.actions import discrete_actions


class PQNBuilder(unroll_queue.UnrollQueueBuilder):
  """Parallelized Q-network (PQN); discrete actions.

  See https://arxiv.org/abs/2407.04811.
  """

  config: pqn_config.PQNConfig

  def make_network(self, spec):
    config = self.config
    num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
    torso = networks.ObservationTorso(spec.observations, (), config.image_torso)
    # Layer normalization replaces the target network.
    network = networks.SequenceNetwork(
      snt.Sequential([torso, networks.NormalizedMLP(config.hidden_sizes)]),
      networks.make_core(config.core, config.core_size),
      networks.make_value_head(num_actions, dueling=False),
    )
    network.create_variables(spec.observations)
    return network

  def make_policy(self, network, acting) -> interfaces.Policy:
    settings = exploration.epsilon_settings(self.config, acting)
    return policies.RecurrentEpsilonGreedyPolicy(network, **settings)

  def extras_spec(self, spec):
    return types.SequenceExtras(state=self.make_network(spec).state_spec())

  def make_update(self, network, spec):
    actions = discrete_actions.DiscreteActions(spec.actions)
    return learning.PQNUpdate(network, self.config, actions)
