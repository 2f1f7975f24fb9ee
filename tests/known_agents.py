"""What each agent is, said once: tests of all agents take it from here."""

from typing import NamedTuple

from repertory.agents import registry


class Known(NamedTuple):
  """What an agent is expected to be.

  Attributes:
    learns_from: `replay`, `unrolls`, or `data` that were recorded.
    actions: The kinds that it takes: `discrete`, `continuous`, or both, with
      the one first that tests take which try one.
    environments_per_actor: How many there are if nothing is said.
    core: The recurrent core that is harder to divide, where there is a choice.
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
  """Returns the names of those that learn from it."""
  return [name for name in NAMES if AGENTS[name].learns_from == source]


def taking(actions):
  """Returns the names of those that take actions of a kind."""
  return [name for name in NAMES if actions in AGENTS[name].actions]
