"""Conformance tests of tensor environments, and of their host batches."""

import functools

import pytest

from repertory.environments import conformance as batch_conformance
from repertory.environments import tensor
from repertory.environments.registry import registry
from repertory.environments.tensor import (
  cartpole,
  catch,
  conformance,
  gates,
  lock,
  minatar,
  pendulum,
)
from support.system import rare_cases


class ShortFreeway(minatar.Freeway):
  """Freeway with short episodes."""

  def _begin(self, draws):
    return super()._begin(draws)._replace(time=20)


# Rewards of Pendulum are sums of three terms, up to 16.
_PENDULUM = {'num_steps': 220, 'end_discounts': (1,), 'xla_tolerance': 1e-6}
# By name: the environment, and attributes of its conformance tests.
_CASES = {
  'catch': (lambda: catch.TensorCatch(5, 4), {}),
  'cartpole': (cartpole.CartPole, {'xla_tolerance': 1e-6}),
  'pendulum': (pendulum.Pendulum, _PENDULUM),
  'gates': (
    gates.Gates,
    {'num_steps': 90, 'is_random': False, 'end_discounts': None},
  ),
  'lock': (
    lambda: tensor.TensorPreviousActionAndReward(lock.Lock(key=True)),
    {},
  ),
  'asterix': (minatar.Asterix, {'num_steps': 100}),
  'breakout': (minatar.Breakout, {}),
  'freeway': (ShortFreeway, {}),
  'seaquest': (minatar.Seaquest, {}),
  # Only sticky actions are random here.
  'space_invaders': (minatar.SpaceInvaders, {'num_steps': 100}),
  'gymnax/Catch-bsuite': (None, {}),
  'gymnax/Pendulum-v1': (None, {**_PENDULUM, 'row_tolerance': 1e-6}),
}
_DAILY = ('catch', 'cartpole', 'gates', 'breakout', 'gymnax/Catch-bsuite')


@functools.cache
def _make(name):
  make, _ = _CASES[name]
  if make is not None:
    return make()
  pytest.importorskip('gymnax')
  return registry.make_factory(f'tensor:{name}').make_tensor_environment()


class TestTensorEnvironments(conformance.TensorEnvironmentConformance):
  end_discounts = (0,)

  @pytest.fixture(autouse=True, params=rare_cases.daily(_CASES, _DAILY))
  def _case(self, request):
    self.name = request.param
    vars(self).update(_CASES[self.name][1])

  def make_environment(self):
    return _make(self.name)


class TestOnHost(batch_conformance.EnvironmentBatchConformance):
  name = 'tensor:lock?key=true'
  num_steps = 30
  end_discounts = (0,)

  def make_environment(self, seed):
    return registry.make(self.name, seed)

  def make_batch(self, seeds):
    return registry.make_factory(self.name).make_batch(seeds)


@pytest.mark.parametrize('game', ['asterix', 'breakout', 'seaquest'])
def test_specs_of_minatar(game):
  pytest.importorskip('minatar')
  for options in ('', '?full_actions=false'):
    made, other = (
      registry.make(f'{prefix}{game}{options}', 0)
      for prefix in ('tensor:minatar/', 'minatar:')
    )
    assert made.observation_spec() == other.observation_spec()
    assert made.action_spec() == other.action_spec()
