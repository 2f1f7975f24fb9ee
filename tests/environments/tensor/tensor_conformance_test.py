"""Conformance tests of tensor environments, and of their host batches."""

import pytest

from repertory.environments import conformance as batch_conformance
from repertory.environments import tensor
from repertory.environments.registry import registry
from repertory.environments.tensor import (
  cartpole,
  catch,
  conformance,
  lock,
  pendulum,
)


class Conformance(conformance.TensorEnvironmentConformance):
  end_discounts = (0,)
  environment: tensor.TensorEnvironment

  def make_environment(self):
    return self.environment


class TestCatch(Conformance):
  environment = catch.TensorCatch(5, 4)


class TestCartPole(Conformance):
  xla_tolerance = 1e-6
  environment = cartpole.CartPole()


@pytest.mark.chaos
class TestPendulum(Conformance):
  num_steps = 220
  end_discounts = (1,)
  # Rewards are sums of three terms, up to 16.
  xla_tolerance = 1e-6
  environment = pendulum.Pendulum()


@pytest.mark.chaos
class TestLock(Conformance):
  environment = tensor.TensorPreviousActionAndReward(lock.Lock(key=True))


class TestOnHost(batch_conformance.EnvironmentBatchConformance):
  name = 'tensor:lock?key=true'
  num_steps = 30
  end_discounts = (0,)

  def make_environment(self, seed):
    return registry.make(self.name, seed)

  def make_batch(self, seeds):
    return registry.make_factory(self.name).make_batch(seeds)
