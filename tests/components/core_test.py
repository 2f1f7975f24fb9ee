"""Tests of `components/core.py`."""

import tensorflow as tf
from acme import core as acme_core

from repertory.components import actors, interfaces, learners, types


def test_parts_are_acmes_kind():
  assert issubclass(actors.PolicyActor, acme_core.Actor)
  assert issubclass(actors.Unbatched, acme_core.Actor)
  assert issubclass(learners.GradientLearner, acme_core.Learner)


class TestPolicy:
  def test_without_memory_and_description(self):
    class Memoryless(interfaces.Policy):
      def initial_state(self, environment_ids):
        return ()

      def step(self, observation, state):
        return interfaces.PolicyOutput(observation, (), state)

    policy = Memoryless()
    state = {'random': tf.constant([1, 2])}
    assert policy.reset_state(state, tf.constant([True, False])) is state
    assert policy.describe([0, 1]) == {}


class TestUpdate:
  def test_variables_are_all_there_is_to_save(self):
    class Holder(interfaces.Update):
      def __init__(self):
        super().__init__()
        self.online = [tf.Variable(1.0), tf.Variable(2.0)]
        self._parts = {'copy': learners.PeriodicCopy([], [], 1)}

      @property
      def exports(self):
        return {'policy': self.online}

      def __call__(self, sample):
        return interfaces.UpdateResult({})

    values = sorted(float(v) for v in Holder().variables)
    assert values == [0, 1, 2]  # 0 is the count of `PeriodicCopy`.


class TestTypes:
  def test_fields_come_in_the_order_that_tables_are_written_in(self):
    assert types.Transition._fields == (
      'observation',
      'action',
      'reward',
      'discount',
      'next_observation',
      'extras',
    )
    assert types.Sample._fields == (
      'data',
      'keys',
      'probabilities',
      'table_sizes',
      'is_demonstration',
    )
