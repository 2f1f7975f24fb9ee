"""Checks policies, updates and builders of all agents."""

import pytest
import tensorflow as tf

import acting_policies
import agent_batches
from repertory.agents import builder
from repertory.agents import conformance as agents_conformance
from repertory.components import conformance


class _Agents:
  """Takes each agent in turn."""

  @pytest.fixture(autouse=True, params=sorted(agent_batches.AGENTS))
  def _agent(self, request):
    self.builder = agent_batches.make_builder(request.param)
    self.spec = agent_batches.AGENTS[request.param].spec

  def make_network(self):
    network = self.builder.make_network(self.spec)
    acting_policies.fill(network.trainable_variables)
    return network


class TestPolicies(_Agents, conformance.PolicyConformance):
  evaluation = False

  def make_spec(self):
    return self.spec

  def make_policy(self):
    acting = builder.Acting(
      self.spec, self.num_environments, 7, 10**6, self.evaluation
    )
    return self.builder.make_policy(self.make_network(), acting)


class TestEvaluationPolicies(TestPolicies):
  evaluation = True


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
