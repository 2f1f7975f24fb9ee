"""Checks policies, updates and builders of all agents."""

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
  started_updates,
)
from support.system import rare_cases

# Settings that make parts of another kind, by agent.
_VARIANTS = {
  'dqn, munchausen iqn': {
    'distribution': 'implicit_quantile', 'munchausen': True, 'noisy': True,
    'num_taus': 3, 'num_target_taus': 3, 'num_policy_taus': 4,
  },
  'dqn, rainbow': {
    'distribution': 'categorical', 'num_atoms': 5, 'noisy': True,
    'epsilon_base': 0.0, 'epsilon_anneal_steps': 0,
  },
}  # fmt: skip
_DIALS = specs.BoundedArray((2,), np.int64, 0, [1, 2])
_GRIP = specs.DiscreteArray(2, np.int32)
_ARM = specs.BoundedArray((2,), np.float32, [-1, -2], 1)
_WHEEL = specs.BoundedArray((), np.float32, -1, 1)
_MIXED = {'grip': _GRIP, 'arm': (_ARM,), 'dials': _DIALS}
_DISCRETE = {'grip': _GRIP, 'dials': _DIALS}
_CONTINUOUS = {'wheel': _WHEEL, 'arm': [_ARM]}
# Agents with nested actions, and settings.
_NESTED = {
  'nested impala': ('impala', _MIXED, {}),
  'nested impala, dials': ('impala', _DIALS, {}),
  'nested ppo': ('ppo', _MIXED, {'core': 'gru', 'core_size': 3}),
  'nested dqn': ('dqn', _DIALS, {}),
  'nested r2d2': ('r2d2', _DISCRETE, {'core_size': 3}),
  'nested r2d2, gtrxl': (
    'r2d2',
    _DISCRETE,
    {'core': 'gtrxl', 'core_size': 4, 'core_heads': 2, 'core_window': 3},
  ),
  'nested bc': ('bc', _CONTINUOUS, {}),
  'nested sac': ('sac', _CONTINUOUS, {}),
  'nested sac, discrete': ('sac', _DIALS, {}),
  'nested sac, correlated': ('sac', _CONTINUOUS, {'noise_correlation': 0.8}),
  'nested d4pg': ('d4pg', _CONTINUOUS, {}),
  'nested mpo': ('mpo', _CONTINUOUS, {}),
  'nested vmpo': ('vmpo', _MIXED, {}),
  'nested mpo, discrete': ('mpo', _DISCRETE, {'distribution': 'categorical'}),
}
_BOTH = {'normalize_observations': True, 'normalize_rewards': True}
_NORMALIZED = {
  **{f'{name}, normalized': _BOTH for name in agent_batches.AGENTS},
  'bc, normalized': {'normalize_observations': True},
  'sac, normalized': {'normalize_observations': True},
  'dqn, normalized': {**_BOTH, 'num_sgd_steps_per_step': 2},
}
_FOR_CHOICES = known_agents.taking('discrete')
_FOR_BOUNDED = known_agents.taking('continuous')
_CASES = sorted([*agent_batches.AGENTS, *_VARIANTS])
_DAILY = [case for case in _CASES if case != 'dqn, rainbow']


class _Agents:
  """Parameterizes the tests by agents."""

  @pytest.fixture(autouse=True)
  def _agent(self, case):
    name, actions, settings = _NESTED.get(
      case,
      (case.split(',')[0], None, {**_VARIANTS, **_NORMALIZED}.get(case, {})),
    )
    self.builder = agent_batches.make_builder(name, **settings)
    spec = agent_batches.AGENTS[name].spec
    if actions is not None:
      spec = spec._replace(actions=actions)
      if self.builder.observes_previous_action_and_reward:
        spec = spec._replace(
          observations={
            'observation': spec.observations,
            'previous_action': actions,
            'previous_reward': spec.rewards,
          }
        )
    self.spec = spec

  def make_spec(self):
    return self.spec

  def make_builder(self):
    return self.builder

  def make_network(self):
    network = self.builder.make_network(self.spec)
    acting_policies.fill(network.trainable_variables)
    return network


# That each of them learns as it should, tests of its own show.
_few_daily = pytest.mark.parametrize(
  'case', rare_cases.daily(_CASES, ['dqn', 'impala', 'mpo', 'r2d2', 'sac'])
)


class _Policies(_Agents, testing.PolicyConformance):
  evaluation = False

  def make_policy(self):
    acting = builder.Acting(
      self.spec, self.num_environments, 7, 10**6, self.evaluation
    )
    return self.builder.make_policy(self.make_network(), acting)


@pytest.mark.parametrize(
  'case',
  [
    *rare_cases.daily(_CASES, _DAILY),
    *('nested ppo', 'nested r2d2', 'nested sac', 'nested sac, correlated'),
    'nested mpo, discrete',
  ],
)
class TestPolicies(_Policies):
  pass


@_few_daily
class TestEvaluationPolicies(_Policies):
  evaluation = True


@_few_daily
class TestUpdates(_Agents, started_updates.StartedUpdates):
  num_updates = 1

  def make_update(self, network):
    tf.random.set_seed(0)
    return self.builder.make_update(network, self.spec)

  def make_sample(self, seed):
    return agent_batches.make_batch(self.builder, self.spec, seed)


@pytest.mark.parametrize(
  'case',
  rare_cases.daily(
    [*_CASES, *_NESTED, *_NORMALIZED],
    [
      *_DAILY,
      *('nested impala', 'nested dqn', 'nested sac', 'nested mpo'),
      *('dqn, normalized', 'r2d2, normalized', 'vmpo, normalized'),
    ],
  ),
)
class TestBuilders(_Agents, agents_conformance.BuilderConformance):
  pass


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
