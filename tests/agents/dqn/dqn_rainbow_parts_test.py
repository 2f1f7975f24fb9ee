"""Checks policies, updates and builders of DQN with what Rainbow adds."""

import pytest
import tensorflow as tf

import acting_policies
import agent_batches
from repertory.agents import builder
from repertory.agents import conformance as agents_conformance
from repertory.components import conformance

_RAINBOW = {
  'distribution': 'categorical', 'num_atoms': 5, 'noisy': True,
  'epsilon_base': 0.0, 'epsilon_anneal_steps': 0,
}  # fmt: skip
_MUNCHAUSEN_IQN = {
  'distribution': 'implicit_quantile', 'munchausen': True, 'num_taus': 3,
  'num_target_taus': 3, 'num_policy_taus': 4,
}  # fmt: skip


class _Agents:
  """Takes two combinations in turn."""

  spec = agent_batches.AGENTS['dqn'].spec

  @pytest.fixture(
    autouse=True,
    params=[_RAINBOW, _MUNCHAUSEN_IQN],
    ids=['rainbow', 'munchausen_iqn'],
  )
  def _agent(self, request):
    self.builder = agent_batches.make_builder('dqn', **request.param)

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
