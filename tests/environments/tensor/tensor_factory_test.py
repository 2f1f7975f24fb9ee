"""Tests of the names and factories of tensor environments."""

import functools
import pickle

import numpy as np
import pytest

from repertory.environments import tensor
from repertory.environments.registry import families, registry
from repertory.environments.tensor import catch


def test_every_entry_can_be_made():
  for family in families.FAMILIES:
    if family.prefix != 'tensor':
      continue
    parts = dict.fromkeys(family.syntax.groupindex, '4')
    if family.extra:
      pytest.importorskip(family.extra)
      parts['id'] = 'CartPole-v1'
    settings = {option.name: option.default for option in family.options()}
    made = family.makers(parts, settings).make_tensor()
    assert isinstance(made, tensor.TensorEnvironment)


def test_own_factory():
  factory = tensor.Factory(
    functools.partial(catch.TensorCatch, rows=3, columns=2)
  )
  copy = pickle.loads(pickle.dumps(factory))
  environment = registry.make_tensor_environment(copy)
  assert environment.observation_spec().shape == (3, 2)
  alone = [copy(seed).reset().observation for seed in range(6)]
  together = copy.make_batch(range(6)).reset().observation
  np.testing.assert_array_equal(alone, together)
  with pytest.raises(ValueError, match='`seeds`'):
    factory.make_batch([])
  with pytest.raises(ValueError, match=r'`seed`.*got -1'):
    factory(-1)


class Wrapped(registry.EnvironmentFactory):
  """Wraps host environments, which has no tensor counterpart."""

  def __call__(self, seed):
    return super().__call__(seed)


@pytest.mark.parametrize(
  ('factory', 'found'),
  [
    (registry.make_factory('catch'), "'catch'"),
    (Wrapped('tensor:catch'), "'tensor:catch'"),
    (len, 'built-in function len'),
  ],
)
def test_other_environments_are_refused(factory, found):
  with pytest.raises(
    ValueError,
    match=f'got .*{found}.* Use one of tensor:catch.* or a `tensor.Factory`'
    ' of your own',
  ):
    registry.make_tensor_environment(factory)
