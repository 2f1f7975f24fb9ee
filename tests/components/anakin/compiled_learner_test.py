"""Tests of compiled acting and learning, and of the learner."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import (
  adders,
  anakin,
  interfaces,
  learners,
  replay,
  specs,
)
from repertory.components.transports import experience as experience_lib
from repertory.environments import tensor
from repertory.environments.tensor import catch

_NUM_ENVIRONMENTS = 3
_NAN = float('nan')


class _Policy(interfaces.Policy):
  """Acts by the sign of a product, and by the number of its steps."""

  def __init__(self, weights):
    super().__init__()
    self.weights = weights

  def initial_state(self, environment_ids):
    return tf.constant(list(environment_ids), tf.int32)

  def step(self, observation, state):
    size = observation.shape[0]
    value = tf.linalg.matvec(
      tf.reshape(observation, [size, -1]), self.weights
    )  # [B]
    action = (state + tf.cast(value > 0, tf.int32)) % 3
    return interfaces.PolicyOutput(action, (), state + 1)


class _Update(interfaces.Update):
  """Fits the rewards, and diverges in the given steps.

  The batch affects the update, so that all steps differ.
  """

  def __init__(self, size, bad_steps=()):
    super().__init__()
    self.weights = tf.Variable(tf.fill([size], 0.1))
    self.calls = tf.Variable(0, dtype=tf.int64)
    # The number of attempts is not undone.
    self._tries = _Hidden()
    self._bad = tf.constant([-1, *bad_steps], tf.int64)

  @property
  def exports(self):
    return {'policy': [self.weights]}

  def __call__(self, sample):
    data = sample.data
    tries = self._tries.variable.assign_add(1)
    observation = tf.reshape(data.observation, [data.reward.shape[0], -1])
    errors = data.reward - tf.linalg.matvec(observation, self.weights)
    step = tf.reduce_mean(errors[:, None] * observation, axis=0)
    is_bad = tf.reduce_any(tf.equal(self._bad, tries))
    loss = tf.where(is_bad, _NAN, tf.reduce_mean(errors**2))
    self.weights.assign_add(0.1 * step + 0 * loss)
    self.calls.assign_add(1)
    mark = _mark(observation, data.reward)
    return interfaces.UpdateResult(
      {'loss': loss, 'tries': tf.cast(tries, tf.float32), 'mark': mark},
      priorities=tf.where(is_bad, float('inf'), tf.abs(errors)),
    )


def _mark(observation, reward):
  """Identifies a batch by integers; for tensors and arrays."""
  rows = sum(
    (b + 1) * (j + 1) * observation[b, j] for b in range(2) for j in range(12)
  )
  return rows + 1000 * reward[0] + 10_000 * reward[1]


class _Hidden:
  """Hides a variable from `tf.Module`."""

  def __init__(self):
    self.variable = tf.Variable(0, dtype=tf.int64)


class _Logger:
  def __init__(self):
    self.rows = []

  def write(self, data):
    self.rows.append({k: float(v) for k, v in data.items()})


class _Run:
  """A learner on Catch that samples transitions by priority."""

  def __init__(self, bad_steps=(), divergence=None, logger=None, seed=0):
    environment = catch.TensorCatch(rows=4, columns=3)
    items = adders.Transitions(n_step=2, discount=0.9)
    table = replay.prioritized(
      items.signature(specs.make_environment_spec(environment)),
      20,
      replay.RateLimit(1.0, min_size=6, error_buffer=float('inf')),
      0.5,
    )
    experience = experience_lib.Experience(
      items, [table], batch_size=2, min_priority=0.01
    )
    self.transport = anakin.TransitionTransport(
      experience, _NUM_ENVIRONMENTS, seed
    )
    counters = tensor.initial_counters(range(_NUM_ENVIRONMENTS))
    state, timestep = environment.reset(environment.initial_state(counters))
    self.update = _Update(12, bad_steps)
    policy = _Policy(self.update.weights)
    begin = anakin.begin(
      timestep, state, policy.initial_state(range(_NUM_ENVIRONMENTS))
    )
    self.learner = anakin.CompiledLearner(
      policy,
      environment,
      self.transport,
      self.update,
      begin,
      logger=logger,
      divergence=divergence,
    )
    self.ended = anakin.EpisodeBatch(0, [])

  def advance(self, num_turns):
    ended = self.learner.advance(num_turns)
    self.ended = anakin.EpisodeBatch(
      self.ended.num_steps + ended.num_steps,
      self.ended.episodes + ended.episodes,
    )

  def arrays(self):
    return {**self.learner.save(), **self.learner.save_acting()}


def _assert_same(one, other):
  assert one.keys() == other.keys()
  for name in one:
    np.testing.assert_array_equal(one[name], other[name], err_msg=name)


# Of 40 iterations: Catch of 4 rows has 3 steps and a reset, so 30 steps of each
# environment and 10 ends, each of which completes all its items.
_NUM_TURNS = 40
_NUM_ITEMS = 30 * _NUM_ENVIRONMENTS
_NUM_UPDATES = (_NUM_ITEMS - 6) // 2


@pytest.fixture(scope='module', name='whole')
def _whole():
  """A run in one call, and its rows."""
  logger = _Logger()
  run = _Run(logger=logger)
  run.advance(_NUM_TURNS)
  return run, logger.rows


def test_counts_steps_episodes_and_items(whole):
  run, _ = whole
  assert run.ended.num_steps == 30 * _NUM_ENVIRONMENTS
  returns, lengths = zip(*run.ended.episodes)
  assert lengths == (3,) * (10 * _NUM_ENVIRONMENTS)
  assert set(returns) == {-1.0, 1.0}
  assert run.learner.count_items() == {
    'replay': {'inserts': _NUM_ITEMS, 'samples': 2 * _NUM_UPDATES}
  }
  assert run.learner.steps == _NUM_UPDATES


def test_logs_a_row_for_each_update(whole):
  run, rows = whole
  assert [row['tries'] for row in rows] == list(range(1, _NUM_UPDATES + 1))
  assert all(row['loss'] > 0 for row in rows)
  assert run.learner.max_priority >= max(row['loss'] for row in rows) ** 0.5


def test_resumes_exactly_from_saved_arrays(whole):
  expected, rows = whole
  first, logger = _Run(), _Logger()
  first.advance(17)
  second = _Run(logger=logger, seed=3)
  second.advance(5)  # These iterations are overwritten.
  logger.rows.clear()
  second.learner.restore(first.learner.save())
  second.learner.restore_acting(first.learner.save_acting())
  second.advance(_NUM_TURNS - 17)
  _assert_same(second.arrays(), expected.arrays())
  losses = [row['loss'] for row in logger.rows]
  assert losses == [row['loss'] for row in rows[-len(losses) :]]
  assert first.learner.steps + len(losses) == _NUM_UPDATES


def test_mismatches_are_not_restored(whole):
  expected, _ = whole
  run = _Run()
  before = run.arrays()
  arrays = dict(expected.learner.save_acting())
  arrays['carry/0000'] = np.zeros([7])
  with pytest.raises(ValueError, match='carry/0000: expected'):
    run.learner.restore_acting(arrays)
  _assert_same(run.arrays(), before)


def _skip(max_skips):
  return learners.Divergence('skip', max_skips=max_skips)


def test_stop_names_the_step_and_undoes_it(tmp_path, whole):
  _, rows = whole
  logger = _Logger()
  run = _Run(
    bad_steps=[9],
    divergence=learners.Divergence('stop', directory=str(tmp_path)),
    logger=logger,
  )
  message = (
    r'(?s)diverged in learner step 9: .*step was undone. Its batch is in .*'
    'step_9.npz'
  )
  with pytest.raises(FloatingPointError, match=message):
    run.advance(_NUM_TURNS)
  # The eight before are not undone, and none follows.
  assert logger.rows == rows[:8]
  assert run.update.calls.numpy() == 8
  assert run.update._tries.variable.numpy() == 9
  assert run.learner.steps == 9
  # Its batch is that of the ninth update of a run without divergence.
  with np.load(tmp_path / 'step_9.npz') as file:
    observation, reward = file['data/observation'], file['data/reward']
  mark = _mark(observation.reshape(2, 12), reward)
  assert mark == rows[8]['mark']
  assert mark not in (rows[7]['mark'], rows[9]['mark'])


def test_skip_continues_and_counts(whole):
  logger = _Logger()
  bad = [2, 5, 6, 11]
  run = _Run(bad_steps=bad, divergence=_skip(2), logger=logger)
  run.advance(_NUM_TURNS)
  assert run.learner.steps == _NUM_UPDATES
  assert run.update.calls.numpy() == _NUM_UPDATES - 4
  steps = range(1, _NUM_UPDATES + 1)
  assert [row['tries'] for row in logger.rows] == list(steps)
  found = [row['skipped_updates'] for row in logger.rows]
  assert found == [sum(b <= step for b in bad) for step in steps]
  is_bad = [bool(np.isnan(row['loss'])) for row in logger.rows]
  assert is_bad == [step in bad for step in steps]
  assert np.isfinite(run.learner.max_priority)
  for array in run.arrays().values():
    assert np.isfinite(array).all()


def test_too_many_skips_in_a_row_stop_it():
  """Updates of separate calls count together; a finite one resets the count."""
  run = _Run(bad_steps=[3, 4, 6, 7, 8, 9], divergence=_skip(2))
  message = 'learner step 8, as in all of the last 3'
  with pytest.raises(FloatingPointError, match=message):
    for _ in range(_NUM_TURNS):
      run.advance(1)
  assert run.learner.steps == 8
  assert run.update.calls.numpy() == 3
  assert run.update._tries.variable.numpy() == 8
