"""Builder of PQN."""

from repertory.agents.actor_critic import exploration
from repertory.agents.interface import builder
from repertory.agents.pqn import config as pqn_config
from repertory.agents.pqn import learning, networks
from repertory.agents.unrolls import unroll_queue
from repertory.components import interfaces, policies, specs, types
from repertory.components.actions import discrete_actions
from repertory.components.networks import SequenceNetwork


class PQNBuilder(unroll_queue.UnrollQueueBuilder):
  """Parallelized Q-network (PQN); discrete actions.

  See https://arxiv.org/abs/2407.04811.
  """

  config: pqn_config.PQNConfig

  def __init__(self, config: pqn_config.PQNConfig | None = None):
    super().__init__(config or pqn_config.PQNConfig())

  def make_network(self, spec: specs.EnvironmentSpec) -> SequenceNetwork:
    return networks.make_network(spec, self.config)

  def make_policy(
    self, network: SequenceNetwork, acting: builder.Acting
  ) -> interfaces.Policy:
    settings = exploration.epsilon_settings(self.config, acting)
    return policies.RecurrentEpsilonGreedyPolicy(network, **settings)

  def extras_spec(self, spec: specs.EnvironmentSpec) -> types.SequenceExtras:
    return types.SequenceExtras(state=self.make_network(spec).state_spec())

  def make_update(
    self, network: SequenceNetwork, spec: specs.EnvironmentSpec
  ) -> interfaces.Update:
    actions = discrete_actions.DiscreteActions(spec.actions)
    return learning.PQNUpdate(network, self.config, actions)
