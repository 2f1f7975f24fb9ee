"""Conformance tests of the games of gymnax."""

import pytest

from repertory.environments.tensor import conformance, gymnax_adapter

pytest.importorskip('gymnax')


class TestCatch(conformance.TensorEnvironmentConformance):
  end_discounts = (0,)

  def make_environment(self):
    return gymnax_adapter.Gymnax('Catch-bsuite')


@pytest.mark.chaos
class TestPendulum(conformance.TensorEnvironmentConformance):
  num_steps = 220
  end_discounts = (1,)
  # Rewards are sums of three terms, up to 16.
  xla_tolerance = 1e-6
  row_tolerance = 1e-6

  def make_environment(self):
    return gymnax_adapter.Gymnax('Pendulum-v1')
