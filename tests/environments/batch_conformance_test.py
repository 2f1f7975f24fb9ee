"""Tests that each conformance test of batches finds its violation."""

import numpy as np
import pytest

from repertory.environments import conformance, wrappers
from repertory.environments.batches import batch
from repertory.environments.games import catch


def _make_slot(seed):
  return wrappers.StepLimit(catch.Catch(seed=seed), 7 + 3 * seed)


class _Batch:
  """A batch whose behavior subclasses break."""

  def __init__(self, seeds):
    self._batch = batch.EnvironmentBatch(self._make(seeds))

  def _make(self, seeds):
    return [_make_slot(seed) for seed in seeds]

  def __getattr__(self, name):
    return getattr(self._batch, name)

  def reset(self):
    return self._say(self._batch.reset())

  def step(self, actions):
    return self._say(self._batch.step(actions))

  def _say(self, timestep):
    return timestep


class _BadObservation(_Batch):
  def _say(self, timestep):
    return timestep._replace(observation=timestep.observation + 7)


class _SeededAlike(_Batch):
  def _make(self, seeds):
    return [catch.Catch(seed=0) for _ in seeds]


class _Greedy(_Batch):
  """Applies an ended slot's action to the first step of its next episode."""

  _late = 0

  def step(self, actions):
    late, self._late = self._late, int(actions.max() > 2)
    return self._batch.step(np.full_like(np.minimum(actions, 2), 2 * late))


class _Checks(conformance.EnvironmentBatchConformance):
  batch_class = _Batch
  num_steps = 40
  end_discounts = (0.0, 1.0)

  def make_environment(self, seed):
    return _make_slot(seed)

  def make_batch(self, seeds):
    return self.batch_class(seeds)


@pytest.mark.parametrize(
  ('batch_class', 'check'),
  [
    (_BadObservation, 'timesteps'),
    (_SeededAlike, 'seeds'),
    (_Greedy, 'actions_of_ended_slots_are_ignored'),
    (_SeededAlike, 'slots_do_what_environments_do_alone'),
  ],
)
def test_finds_wrong_batches(batch_class, check):
  checks = _Checks()
  checks.batch_class = batch_class
  with pytest.raises((AssertionError, ValueError, AttributeError)):
    getattr(checks, f'test_{check}')()


def test_an_end_must_come():
  checks = _Checks()
  checks.num_steps, checks.end_discounts = 3, None
  with pytest.raises(AssertionError, match='take more'):
    checks.test_timesteps()
