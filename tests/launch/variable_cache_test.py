"""Tests of the cached variables of learners."""

import pickle

import numpy as np
import pytest

from repertory.launch.nodes import learning


class _Learner:
  """Variable source that counts reads."""

  def __init__(self):
    self.steps = 0
    self.max_priority = 1.0
    self.num_reads = 0
    self.on_read = lambda: None

  def get_variables(self, names):
    self.num_reads += 1
    self.on_read()
    known = {'policy': [np.full([2], self.steps, np.float32), np.ones([])]}
    known['learner_steps'] = np.asarray(self.steps, np.int64)
    return [known[name] for name in names]

  def age(self):
    return self.steps, self.max_priority


@pytest.fixture(name='learner')
def _learner():
  return _Learner()


@pytest.fixture(name='ask')
def _ask(learner):
  get = learning.cached(learner.get_variables, learner.age)
  return lambda *names: pickle.loads(get(list(names)))


def test_are_read_once_per_learner_step(ask, learner):
  ask('policy', 'learner_steps')
  policy, steps = ask('policy', 'learner_steps')
  np.testing.assert_array_equal(policy[0], np.zeros(2, np.float32))
  assert (policy[0].dtype, policy[1].shape, steps) == (np.float32, (), 0)
  assert learner.num_reads == 1
  learner.steps = 3
  ((values, _),) = ask('policy')
  assert values[0] == 3
  assert learner.num_reads == 2
  learner.max_priority = 2.0
  ask('policy')
  assert learner.num_reads == 3


def test_a_step_during_the_reading_is_not_missed(ask, learner):
  def step():
    learner.on_read = lambda: None
    learner.steps += 1

  # Before the read: the values are newer than their version key.
  learner.on_read = step
  ask('policy')
  ask('policy')
  assert learner.num_reads == 2
  ask('policy')
  assert learner.num_reads == 2
