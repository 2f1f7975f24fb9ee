"""Checks policies, updates and builders of all agents."""

import pytest
import tensorflow as tf

from repertory.agents.interface import builder
from repertory.agents.interface import conformance as agents_conformance
from repertory.components import testing
from support.agents import acting_policies, agent_batches, started_updates
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
_CASES = sorted([*agent_batches.AGENTS, *_VARIANTS])
_DAILY = [case for case in _CASES if case != 'dqn, rainbow']


class _Agents:
  """Parameterizes the tests by agents."""

  @pytest.fixture(autouse=True)
  def _agent(self, case):
    name = case.split(',')[0]
    settings = _VARIANTS.get(case, {})
    self.builder = agent_batches.make_builder(name, **settings)
    self.spec = agent_batches.AGENTS[name].spec

  def make_network(self):
    network = self.builder.make_network(self.spec)
    acting_policies.fill(network.trainable_variables)
    return network


_daily = pytest.mark.parametrize('case', rare_cases.daily(_CASES, _DAILY))
# That each of them learns as it should, tests of its own show.
_few_daily = pytest.mark.parametrize(
  'case', rare_cases.daily(_CASES, ['dqn', 'impala', 'mpo', 'r2d2', 'sac'])
)


class _Policies(_Agents, testing.PolicyConformance):
  def make_spec(self):
    return self.spec

  def make_policy(self):
    acting = builder.Acting(
      self.spec, self.num_environments, 7, 10**6, self.evaluation
    )
    return self.builder.make_policy(self.make_network(), acting)


@_daily
class TestPolicies(_Policies):
  evaluation = False


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


@_daily
class TestBuilders(_Agents, agents_conformance.BuilderConformance):
  def make_builder(self):
    return self.builder

  def make_spec(self):
    return self.spec
