"""Conformance tests of the games of gymnax."""

import pytest

from repertory.environments import conformance as batch_conformance
from repertory.environments.registry import registry
from repertory.environments.tensor import conformance, gymnax_adapter

pytest.importorskip('gymnax')


class TestCatch(conformance.TensorEnvironmentConformance):
  end_discounts = (0,)

  def make_environment(self):
    return gymnax_adapter.Gymnax('Catch-bsuite')


class TestCartPole(conformance.TensorEnvironmentConformance):
  end_discounts = (0,)
  xla_tolerance = 1e-6
  row_tolerance = 1e-6

  def make_environment(self):
    return gymnax_adapter.Gymnax('CartPole-v1')


class TestPendulum(conformance.TensorEnvironmentConformance):
  num_steps = 220
  end_discounts = (1,)
  # Rewards are sums of three terms, up to 16.
  xla_tolerance = 1e-6
  row_tolerance = 1e-6

  def make_environment(self):
    return gymnax_adapter.Gymnax('Pendulum-v1')


class TestCatchOnHost(batch_conformance.EnvironmentBatchConformance):
  name = 'tensor:gymnax/Catch-bsuite'
  end_discounts = (0,)

  def make_environment(self, seed):
    return registry.make(self.name, seed)

  def make_batch(self, seeds):
    return registry.make_factory(self.name).make_batch(seeds)
