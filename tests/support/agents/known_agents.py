"""Expected properties of each agent, shared by tests."""

from typing import NamedTuple

from repertory.agents.interface import registry


class Known(NamedTuple):
  """Expected properties of an agent.

  Attributes:
    learns_from: `replay`, `unrolls`, or recorded `data`.
    actions: Supported kinds of actions: `discrete`, `continuous`, or both, with
      the default of tests first.
    environments_per_actor: Default number of environments per actor.
    core: The recurrent core that is harder to shard, where there is a choice.
  """

  learns_from: str
  actions: tuple[str, ...]
  environments_per_actor: int = 1
  core: str | None = None


AGENTS = {
  'bc': Known('data', ('discrete', 'continuous')),
  'crr': Known('replay', ('continuous',)),
  'd4pg': Known('replay', ('continuous',)),
  'dqn': Known('replay', ('discrete',)),
  'impala': Known('unrolls', ('discrete', 'continuous'), 8, 'gru'),
  'iql': Known('replay', ('continuous',)),
  'mpo': Known('replay', ('continuous', 'discrete')),
  'ppo': Known('unrolls', ('discrete', 'continuous'), 8, 'lstm'),
  'pqn': Known('unrolls', ('discrete',), 16, 'gru'),
  'qtopt': Known('replay', ('continuous',)),
  'r2d2': Known('replay', ('discrete',), core='lstm'),
  'sac': Known('replay', ('continuous', 'discrete')),
  'td3': Known('replay', ('continuous',)),
  'vmpo': Known('unrolls', ('discrete', 'continuous'), 8, 'gru'),
}
NAMES = [agent.name for agent in registry.agents()]


def learning_from(source):
  """Returns the names of agents that learn from a kind of experience."""
  return [name for name in NAMES if AGENTS[name].learns_from == source]


def taking(actions):
  """Returns the names of agents that support a kind of actions."""
  return [name for name in NAMES if actions in AGENTS[name].actions]
