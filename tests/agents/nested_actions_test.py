"""Checks the parts of agents for actions of several parts."""

import numpy as np
import pytest
import tensorflow as tf

import acting_policies
import agent_batches
from repertory.agents import builder, registry
from repertory.agents import conformance as agents_conformance
from repertory.components import conformance, specs

_DIALS = specs.BoundedArray((2,), np.int64, 0, [1, 2])
_GRIP = specs.DiscreteArray(2, np.int32)
_ARM = specs.BoundedArray((2,), np.float32, [-1, -2], 1)
_WHEEL = specs.BoundedArray((), np.float32, -1, 1)
_MIXED = {'grip': _GRIP, 'arm': (_ARM,), 'dials': _DIALS}
_DISCRETE = {'grip': _GRIP, 'dials': _DIALS}
_CONTINUOUS = {'wheel': _WHEEL, 'arm': [_ARM]}
# By test: which agents learn from which actions, and their own settings.
_CASES = {
  'impala': ('impala', _MIXED, {}),
  'impala_dials': ('impala', _DIALS, {}),
  'ppo': ('ppo', _MIXED, {'core': 'gru', 'core_size': 3}),
  'dqn': ('dqn', _DIALS, {}),
  'r2d2': ('r2d2', _DISCRETE, {'core_size': 3}),
  'sac': ('sac', _CONTINUOUS, {}),
  'd4pg': ('d4pg', _CONTINUOUS, {}),
}


class _Agents:
  """Takes each agent in turn."""

  @pytest.fixture(autouse=True, params=_CASES)
  def _agent(self, request):
    agent, actions, settings = _CASES[request.param]
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


class TestPolicies(_Agents, conformance.PolicyConformance):
  def make_spec(self):
    return self.spec

  def make_policy(self):
    acting = builder.Acting(self.spec, self.num_environments, 7, 10**6)
    return self.builder.make_policy(self.make_network(), acting)


class TestUpdates(_Agents, conformance.UpdateConformance):
  num_updates = 1

  def make_update(self, network):
    tf.random.set_seed(0)
    return self.builder.make_update(network, self.spec)

  def make_sample(self, seed):
    return agent_batches.make_batch(self.builder, self.spec, seed)


class TestBuilders(_Agents, agents_conformance.BuilderConformance):
  def make_builder(self):
    return self.builder

  def make_spec(self):
    return self.spec


@pytest.mark.parametrize(
  ('actions', 'expected'),
  [
    (_GRIP, ['dqn', 'impala', 'ppo', 'r2d2']),
    (_DIALS, ['dqn', 'impala', 'ppo', 'r2d2']),
    (_DISCRETE, ['dqn', 'impala', 'ppo', 'r2d2']),
    (specs.BoundedArray((6,), np.int32, 0, 4), ['impala', 'ppo']),
    (_MIXED, ['impala', 'ppo']),
    (_ARM, ['d4pg', 'impala', 'ppo', 'sac']),
    (_CONTINUOUS, ['d4pg', 'impala', 'ppo', 'sac']),
    ({'wheel': specs.Array((), np.float32)}, ['impala', 'ppo']),
    (specs.Array((), np.int32), []),
  ],
)
def test_which_agents_take_which_actions(actions, expected):
  spec = agent_batches.AGENTS['dqn'].spec._replace(actions=actions)
  assert registry.fitting(spec) == expected
