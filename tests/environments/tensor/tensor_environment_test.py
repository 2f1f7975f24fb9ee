"""Tests of `TensorEnvironment`, and of its conformance tests."""

import numpy as np
import pytest
import tensorflow as tf
from dm_env import specs

from repertory.environments import tensor
from repertory.environments.batches import vector_batch
from repertory.environments.tensor import catch, conformance
from repertory.environments.wrappers import previous_action

FIRST, MID, LAST = 0, 1, 2


class Count(tensor.TensorEnvironment):
  """Adds its actions to a number; observes how the last episode ended.

  Episodes terminate at 2 and are truncated at 3.
  """

  def observation_spec(self):
    return {
      'number': specs.Array((), np.int32, 'number'),
      'before': specs.Array((), np.int32, 'before'),
    }

  def action_spec(self):
    return {
      'add': specs.DiscreteArray(4, np.int32, 'add'),
      # Bounds that exclude 0.
      'force': specs.BoundedArray((2,), np.float32, 0.5, 1.5, 'force'),
    }

  def reward_spec(self):
    return specs.BoundedArray((), np.float32, 0.5, 100, 'reward')

  def start(self, counters, before):
    number = tf.zeros(counters.shape, tf.int32)
    last = number if before is None else before['number']
    # The counter shows that random streams continue.
    return {'number': number, 'before': last}, counters + 1

  def advance(self, core, action, counters):
    number = core['number'] + action['add']
    return tensor.Advance(
      {'number': number, 'before': core['before']},
      1 + tf.reduce_sum(action['force'], axis=-1),
      terminated=tf.equal(number, 2) | tf.equal(number, 5),
      truncated=number >= 3,
      counters=counters,
    )

  def observe(self, core):
    return dict(core)


def make_action(*add, force=0.5):
  return {
    'add': tf.constant(add, tf.int32),
    'force': tf.fill([len(add), 2], tf.constant(force)),
  }


def play(environment, *actions):
  """Returns the timesteps as arrays, and the last state."""
  counters = tensor.initial_counters([0] * len(actions[0]['add']))
  state, timestep = environment.reset(environment.initial_state(counters))
  timesteps = [timestep]
  for action in actions:
    state, timestep = environment.step(state, action)
    timesteps.append(timestep)
  return tf.nest.map_structure(lambda t: t.numpy(), timesteps), state


class TestStep:
  def test_two_rows(self):
    timesteps, _ = play(
      Count(),
      make_action(1, 3),
      make_action(1, 1),  # Row 1 was truncated, so its action is ignored.
      make_action(3, 3, force=1.0),  # Row 0 was terminated.
      make_action(1, 1),
    )
    table = [
      (t.step_type.tolist(), t.reward.tolist(), t.discount.tolist())
      for t in timesteps
    ]
    assert table == [
      ([FIRST, FIRST], [0, 0], [1, 1]),
      ([MID, LAST], [2, 2], [1, 1]),
      ([LAST, FIRST], [2, 0], [0, 1]),
      ([FIRST, LAST], [0, 3], [1, 1]),
      ([MID, FIRST], [2, 0], [1, 1]),
    ]
    numbers = [t.observation['number'].tolist() for t in timesteps]
    assert numbers == [[0, 0], [1, 3], [2, 0], [0, 3], [1, 0]]

  def test_ignored_actions_are_replaced_by_valid_ones(self):
    class Table(Count):
      def advance(self, core, action, counters):
        numbers = tf.gather(tf.constant([0, 1, 2, 3]), action['add'])
        return super().advance(core, {**action, 'add': numbers}, counters)

    timesteps, _ = play(Table(), make_action(3), make_action(100))
    assert [t.step_type[0] for t in timesteps] == [FIRST, LAST, FIRST]

  def test_episodes_may_keep_something(self):
    timesteps, state = play(
      Count(), make_action(3), make_action(0), make_action(1), make_action(1)
    )
    # Nothing precedes the first episode; the next one has the 3.
    assert [t.observation['before'][0] for t in timesteps] == [0, 0, 3, 3, 3]
    # `reset` observes the end of the last episode, complete or not.
    _, timestep = Count().reset(state)
    assert timestep.observation['before'] == 2

  @pytest.mark.parametrize(
    ('change', 'message'),
    [
      (
        lambda a: a._replace(reward=tf.constant([1, 1])),
        r'ends of `advance`: expected float32 \(2,\), found int32 \(2,\)',
      ),
      (
        lambda a: a._replace(core={**a.core, 'number': tf.zeros([2])}),
        'Core of `advance`: expected int32 .*found float32',
      ),
      (
        lambda a: a._replace(core={'number': a.core['number']}),
        'Core of `advance`: ',
      ),
    ],
  )
  def test_invalid_advance(self, change, message):
    class Changed(Count):
      def advance(self, core, action, counters):
        return change(super().advance(core, action, counters))

    with pytest.raises(ValueError, match=message):
      play(Changed(), make_action(1, 1))

  @pytest.mark.parametrize(
    ('change', 'message'),
    [
      (
        lambda o: {**o, 'number': o['number'][:1]},
        r'of `observe`: expected int32 \(2,\), found int32 \(1,\)',
      ),
      (lambda o: o['number'], 'Observation of `observe`: '),
    ],
  )
  def test_invalid_observation(self, change, message):
    class Changed(Count):
      def observe(self, core):
        return change(super().observe(core))

    with pytest.raises(ValueError, match=message):
      play(Changed(), make_action(1, 1))


@pytest.mark.parametrize(
  ('name', 'found', 'message'),
  [
    ('advance', (1, 2), 'tuple of core, reward, .* got 2 of them'),
    ('start', None, '`start` must return a tuple of core, counters; got None'),
  ],
)
def test_wrong_number_of_results(monkeypatch, name, found, message):
  environment = Count()
  monkeypatch.setattr(environment, name, lambda *arguments: found)
  with pytest.raises(ValueError, match=message):
    play(environment, make_action(1, 1))


def test_previous_action_is_that_of_host_batches():
  seeds = [0, 1, 2]
  host = previous_action.PreviousActionAndReward(
    tensor.Factory(Count).make_batch(seeds)
  )
  wrapped = tensor.Factory(
    lambda: tensor.TensorPreviousActionAndReward(Count())
  ).make_batch(seeds)
  assert host.observation_spec() == wrapped.observation_spec()
  assert host.observation_spec()['previous_reward'].minimum == 0
  assert host.action_spec() == wrapped.action_spec()
  assert host.reward_spec() == wrapped.reward_spec()
  random = np.random.default_rng(0)
  timesteps = [host.reset(), wrapped.reset()]
  num_first = 0
  for _ in range(20):
    tf.nest.map_structure(np.testing.assert_array_equal, *timesteps)
    actions = {
      'add': random.integers(4, size=3, dtype=np.int32),
      'force': random.uniform(0.5, 1.5, (3, 2)).astype(np.float32),
    }
    timesteps = [host.step(actions), wrapped.step(actions)]
    num_first += (timesteps[0].step_type == FIRST).sum()
  assert num_first > 5
  timesteps = [host.reset(), wrapped.reset()]
  tf.nest.map_structure(np.testing.assert_array_equal, *timesteps)
  forces = timesteps[1].observation['previous_action']['force']
  assert (forces == 0.5).all()  # The lower bound of the spec.


def test_reward_that_is_not_finite():
  class Broken(Count):
    def advance(self, core, action, counters):
      advance = super().advance(core, action, counters)
      reward = tf.where(tf.equal(action['add'], 1), np.nan, advance.reward)
      return advance._replace(reward=reward)

  environments = tensor.Factory(Broken).make_batch([0, 1, 2])
  environments.reset()
  with pytest.raises(
    vector_batch.EnvironmentContractError, match=r'Slot 1, step 1 .*found nan'
  ):
    environments.step(
      {
        'add': np.array([0, 1, 0], np.int32),
        'force': np.ones((3, 2), np.float32),
      }
    )


def test_conformance_finds_rows_that_know_each_other():
  class Wrong(catch.TensorCatch):
    def observe(self, core):
      mean = tf.reduce_mean(tf.cast(core.ball_column, tf.float32))
      return super().observe(core) + mean

  checks = conformance.TensorEnvironmentConformance()
  checks.make_environment = Wrong
  with pytest.raises(AssertionError, match='row 0 alone must equal the row'):
    checks.test_rows_know_nothing_of_each_other()
