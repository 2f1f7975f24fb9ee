"""Tests of `environments/batches/batch.py`."""

import numpy as np
import pytest
from dm_env import specs

from repertory.environments import conformance
from repertory.environments.batches import batch
from repertory.environments.games import catch
from support.environments import scripted_environment

Scripted = scripted_environment.ScriptedEnvironment


class TestNestedBatch(conformance.EnvironmentBatchConformance):
  def make_environment(self, seed):
    return Scripted(length=2 + seed)


class VectorReward(Scripted):
  def reward_spec(self):
    return specs.Array((2,), np.float32)


class TestConstruction:
  def test_empty(self):
    with pytest.raises(ValueError, match=r'`environments`.*at least one'):
      batch.EnvironmentBatch([])

  def test_different_specs(self):
    environments = [catch.Catch(), catch.Catch(), catch.Catch(rows=9)]
    with pytest.raises(
      ValueError, match=r'(?s)observation_spec\(\).*slot 2.*\(9, 5\).*\(10, 5\)'
    ):
      batch.EnvironmentBatch(environments)

  def test_same_environment_twice(self):
    environment = catch.Catch()
    with pytest.raises(ValueError, match='slots 0 and 2 hold the same'):
      batch.EnvironmentBatch([environment, catch.Catch(), environment])

  def test_vector_reward(self):
    with pytest.raises(ValueError, match=r'reward_spec\(\).*scalar.*\(2,\)'):
      batch.EnvironmentBatch([VectorReward()])


class FailingClose(Scripted):
  def close(self):
    super().close()
    raise RuntimeError('The door is stuck.')


class TestClose:
  def test_closes_all_once_and_raises_the_error(self):
    slots = [Scripted(), FailingClose(), Scripted()]
    environments = batch.EnvironmentBatch(slots)
    with pytest.raises(RuntimeError, match='stuck'):
      environments.close()
    environments.close()
    assert [s.num_closes for s in slots] == [1, 1, 1]
