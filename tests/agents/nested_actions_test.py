"""Tests of agents with nested actions."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.agents.interface import builder, registry
from repertory.agents.interface import conformance as agents_conformance
from repertory.components import specs, testing
from support.agents import (
  acting_policies,
  agent_batches,
  known_agents,
)
from support.system import rare_cases

_DIALS = specs.BoundedArray((2,), np.int64, 0, [1, 2])
_GRIP = specs.DiscreteArray(2, np.int32)
_ARM = specs.BoundedArray((2,), np.float32, [-1, -2], 1)
_WHEEL = specs.BoundedArray((), np.float32, -1, 1)
_MIXED = {'grip': _GRIP, 'arm': (_ARM,), 'dials': _DIALS}
_DISCRETE = {'grip': _GRIP, 'dials': _DIALS}
_CONTINUOUS = {'wheel': _WHEEL, 'arm': [_ARM]}
# By test: agents with their actions and settings.
_CASES = {
  'impala': ('impala', _MIXED, {}),
  'impala_dials': ('impala', _DIALS, {}),
  'ppo': ('ppo', _MIXED, {'core': 'gru', 'core_size': 3}),
  'dqn': ('dqn', _DIALS, {}),
  'r2d2': ('r2d2', _DISCRETE, {'core_size': 3}),
  'bc': ('bc', _CONTINUOUS, {}),
  'sac': ('sac', _CONTINUOUS, {}),
  'sac_discrete': ('sac', _DIALS, {}),
  'd4pg': ('d4pg', _CONTINUOUS, {}),
  'mpo': ('mpo', _CONTINUOUS, {}),
  'vmpo': ('vmpo', _MIXED, {}),
  'mpo_discrete': ('mpo', _DISCRETE, {'distribution': 'categorical'}),
}

_FOR_CHOICES = known_agents.taking('discrete')
_FOR_BOUNDED = known_agents.taking('continuous')


class _Agents:
  """Parameterizes the tests by agents."""

  @pytest.fixture(autouse=True)
  def _agent(self, case):
    agent, actions, settings = _CASES[case]
    self.builder = agent_batches.make_builder(agent, **settings)
    spec = agent_batches.AGENTS[agent].spec._replace(actions=actions)
    if self.builder.observes_previous_action_and_reward:
      spec = spec._replace(
        observations={
          'observation': spec.observations,
          'previous_action': actions,
          'previous_reward': spec.rewards,
        }
      )
    self.spec = spec

  def make_network(self):
    network = self.builder.make_network(self.spec)
    acting_policies.fill(network.trainable_variables)
    return network


@pytest.mark.parametrize('case', ['ppo', 'r2d2', 'sac', 'mpo_discrete'])
class TestPolicies(_Agents, testing.PolicyConformance):
  def make_spec(self):
    return self.spec

  def make_policy(self):
    acting = builder.Acting(self.spec, self.num_environments, 7, 10**6)
    return self.builder.make_policy(self.make_network(), acting)


@pytest.mark.parametrize(
  'case', rare_cases.daily(_CASES, ['impala', 'dqn', 'sac', 'mpo'])
)
class TestBuilders(_Agents, agents_conformance.BuilderConformance):
  def make_builder(self):
    return self.builder

  def make_spec(self):
    return self.spec


@pytest.mark.parametrize(
  ('actions', 'expected'),
  [
    (_GRIP, _FOR_CHOICES),
    (_DIALS, _FOR_CHOICES),
    (_DISCRETE, _FOR_CHOICES),
    (specs.BoundedArray((6,), np.int32, 0, 4), ['impala', 'ppo', 'vmpo']),
    (_MIXED, ['impala', 'ppo', 'vmpo']),
    (_ARM, _FOR_BOUNDED),
    (_CONTINUOUS, _FOR_BOUNDED),
    ({'wheel': specs.Array((), np.float32)}, ['impala', 'ppo', 'vmpo']),
    (specs.Array((), np.int32), []),
  ],
)
def test_which_agents_take_which_actions(actions, expected):
  spec = agent_batches.AGENTS['dqn'].spec._replace(actions=actions)
  assert registry.fitting(spec) == expected


@pytest.mark.parametrize('agent', rare_cases.daily(_FOR_CHOICES, ['bc']))
def test_actions_of_small_integers_are_learned_from(agent):
  # In graph mode, as runs are.
  found = []
  for dtype in (np.int32, np.uint8):
    spec = agent_batches.AGENTS['dqn'].spec._replace(
      actions=specs.DiscreteArray(2, dtype)
    )
    made = agent_batches.make_builder(agent)
    if made.observes_previous_action_and_reward:
      made = agent_batches.make_builder(agent, previous_action_and_reward=False)
    tf.random.set_seed(0)
    network = made.make_network(spec)
    update = made.make_update(network, spec)
    batch = agent_batches.make_batch(made, spec, 3)
    call = tf.function(update, autograph=False)
    found.append({n: float(v) for n, v in call(batch).metrics.items()})
  assert found[0] == found[1]
