"""Tests of `components/core.py`."""

import pytest
import tensorflow as tf
from acme import core as acme_core
from acme.adders import base as acme_adders

from repertory.components import actors, core, interfaces, learners, types
from support.agents import counting_policy


class TestVocabulary:
  @pytest.mark.parametrize(
    ('ours', 'theirs'),
    [
      (core.Actor, acme_core.Actor),
      (core.Adder, acme_adders.Adder),
      (core.Learner, acme_core.Learner),
      (core.Saveable, acme_core.Saveable),
      (core.VariableSource, acme_core.VariableSource),
      (core.Worker, acme_core.Worker),
    ],
  )
  def test_is_acmes(self, ours, theirs):
    assert ours is theirs

  def test_parts_are_acmes_kind(self):
    assert issubclass(actors.PolicyActor, acme_core.Actor)
    assert issubclass(actors.Unbatched, acme_core.Actor)
    assert issubclass(actors.Batched, acme_core.Actor)
    assert issubclass(learners.GradientLearner, acme_core.Learner)


class TestPolicy:
  def test_what_a_policy_must_have(self):
    assert interfaces.Policy.__abstractmethods__ == {'initial_state', 'step'}

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

  def test_reset_is_by_row(self):
    policy = counting_policy.CountingPolicy()
    state = policy.step(None, policy.initial_state([7, 8, 9])).state
    state = policy.reset_state(state, tf.constant([False, True, False]))
    assert state['count'].numpy().tolist() == [1001, 0, 1001]
    assert state['id'].numpy().tolist() == [7, 8, 9]


class TestUpdate:
  def test_what_an_update_must_have(self):
    assert interfaces.Update.__abstractmethods__ == {'__call__', 'exports'}

  def test_priorities_may_be_missing(self):
    assert interfaces.UpdateResult({'loss': 1.0}).priorities is None

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
