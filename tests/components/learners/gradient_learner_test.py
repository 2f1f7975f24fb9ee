"""Tests of `components/learners/gradient_learner.py`."""

import threading

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from repertory.components import interfaces, learners, types
from repertory.components.config import settings
from support.agents import agent_batches
from support.system import rare_cases

B = 2
ELEMENT_SPEC = types.Sample(
  data={'x': tf.TensorSpec([B, 3]), 'y': tf.TensorSpec([B])},
  keys=tf.TensorSpec([B], tf.uint64),
  probabilities=tf.TensorSpec([B], tf.float64),
  table_sizes=tf.TensorSpec([B], tf.int64),
)


class LinearUpdate(interfaces.Update):
  """Fits y = x·w by Adam, with a target copied every third step."""

  def __init__(self, seed=0, size=3, period=3):
    super().__init__()
    random = np.random.default_rng(seed)
    self.weights = tf.Variable(random.normal(size=[size]), dtype=tf.float32)
    self.target = tf.Variable(tf.zeros([size]))
    self.optimizer = snt.optimizers.Adam(0.1)
    self.copy = learners.PeriodicCopy([self.weights], [self.target], period)

  @property
  def exports(self):
    return {'policy': [self.weights], 'target': [self.target]}

  def __call__(self, sample):
    with tf.GradientTape() as tape:
      predictions = tf.linalg.matvec(sample.data['x'], self.weights)
      errors = sample.data['y'] - predictions
      loss = tf.reduce_mean(errors**2)
    gradients = tape.gradient(loss, [self.weights])
    self.optimizer.apply(gradients, [self.weights])
    self.copy()
    return interfaces.UpdateResult(
      {'loss': loss, 'size': tf.constant(B)}, priorities=tf.abs(errors)
    )


class RecordingUpdater:
  """Has the method of `PriorityUpdater` that the learner calls."""

  def __init__(self):
    self.calls = []

  def update(self, keys, priorities):
    self.calls.append((keys, priorities))


class RecordingLogger:
  def __init__(self):
    self.rows = []

  def write(self, row):
    self.rows.append(row)


def samples(start=0, y=None):
  """Yields batches; the i-th has keys 2i and 2i + 1."""
  i = start
  while True:
    random = np.random.default_rng(i)
    targets = random.normal(size=B) if y is None else y[i]
    yield types.Sample(
      data={
        'x': tf.constant(random.normal(size=[B, 3]), tf.float32),
        'y': tf.constant(targets, tf.float32),
      },
      keys=tf.constant([2 * i, 2 * i + 1], tf.uint64),
      probabilities=tf.constant([0.1, 0.2], tf.float64),
      table_sizes=tf.constant([10, 10], tf.int64),
    )
    i += 1


def make(update=None, dataset=None, **kwargs):
  return learners.GradientLearner(
    update or LinearUpdate(),
    samples() if dataset is None else dataset,
    ELEMENT_SPEC,
    **kwargs,
  )


def assert_equal_states(one, other):
  assert set(one) == set(other)
  for name in one:
    np.testing.assert_array_equal(one[name], other[name], err_msg=name)


class TestTracing:
  @pytest.mark.parametrize(
    'name',
    rare_cases.daily(agent_batches.AGENTS, ['dqn', 'ppo']),
  )
  def test_makes_no_variables(self, name):
    # Otherwise TensorFlow would trace the update twice, most of its startup.
    spec = agent_batches.AGENTS[name].spec
    builder = agent_batches.make_builder(name)
    update = builder.make_update(builder.make_network(spec), spec)
    before = [variable.ref() for variable in update.variables]
    batch = agent_batches.make_batch(builder, spec, seed=0)
    learners.GradientLearner(update, iter([]), agent_batches.spec_of(batch))
    assert [v.ref() for v in update.variables] == before


class TestElementSpec:
  def test_must_be_known(self):
    with pytest.raises(ValueError, match=r'element_spec must .*generator'):
      learners.GradientLearner(LinearUpdate(), samples())


class TestStep:
  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_takes_a_batch_and_updates(self, jit_compile):
    logger, updater = RecordingLogger(), RecordingUpdater()
    update = LinearUpdate()
    w = update.weights.numpy()
    learner = make(
      update, logger=logger, priority_updater=updater, jit_compile=jit_compile
    )
    np.testing.assert_array_equal(update.weights, w)  # Tracing learns nothing.
    assert learner.steps == 0
    # Adam by hand, https://arxiv.org/abs/1412.6980, algorithm 1.
    m, v, largest = np.zeros(3), np.zeros(3), 1.0
    batches = samples()
    for t in range(1, 6):
      learner.step()
      sample = next(batches)
      x, y = sample.data['x'].numpy(), sample.data['y'].numpy()
      errors = y - x @ w
      gradient = -2 * errors @ x / B
      m = 0.9 * m + 0.1 * gradient
      v = 0.999 * v + 0.001 * gradient**2
      w = w - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
      largest = max(largest, np.abs(errors).max())

      assert learner.steps == t
      np.testing.assert_allclose(update.weights, w, rtol=1e-4, atol=1e-6)
      assert set(logger.rows[-1]) == {'loss', 'size'}
      np.testing.assert_allclose(
        logger.rows[-1]['loss'], np.mean(errors**2), rtol=1e-4
      )
      keys, priorities = updater.calls[-1]
      assert keys.dtype == np.uint64
      assert keys.tolist() == [2 * t - 2, 2 * t - 1]
      np.testing.assert_allclose(priorities, np.abs(errors), rtol=1e-4)
      np.testing.assert_allclose(learner.max_priority, largest, rtol=1e-5)
    assert len(logger.rows) == 5
    assert len(updater.calls) == 5

  def test_updater_needs_priorities(self):
    class Uniform(LinearUpdate):
      def __call__(self, sample):
        return super().__call__(sample)._replace(priorities=None)

    updater = RecordingUpdater()
    learner = make(Uniform(), priority_updater=updater)
    learner.step()
    assert updater.calls == []

  def test_xla_is_used_if_asked_for(self):
    class Uncompilable(LinearUpdate):
      def __call__(self, sample):
        tf.py_function(lambda: None, [], [])  # XLA cannot call Python.
        return super().__call__(sample)

    make(Uncompilable()).step()
    with pytest.raises(settings.SettingError, match=r'calls tf\.py_function,'):
      make(Uncompilable(), jit_compile=True)


class TestGetVariables:
  def test_one_nest_per_name_in_the_order_asked_for(self):
    update = LinearUpdate(period=2)
    learner = make(update)
    for _ in range(3):
      learner.step()
    steps, target, policy, again = learner.get_variables(
      ['learner_steps', 'target', 'policy', 'policy']
    )
    assert steps == 3
    for nest, variable in (
      (target, update.target),
      (policy, update.weights),
      (again, update.weights),
    ):
      (array,) = nest
      np.testing.assert_array_equal(array, variable.numpy())
    assert not np.array_equal(target[0], policy[0])

  def test_unknown_name(self):
    with pytest.raises(
      KeyError, match=r"'polcy'.*learner_steps.*max_priority.*policy.*target"
    ):
      make().get_variables(['policy', 'polcy'])

  def test_all_are_of_one_step(self):
    class Counting(interfaces.Update):
      """Writes the same number into all its variables."""

      def __init__(self):
        super().__init__()
        self.counts = [tf.Variable(tf.zeros([2000])) for _ in range(8)]

      @property
      def exports(self):
        return {'policy': self.counts[:4], 'critic': self.counts[4:]}

      def __call__(self, sample):
        for count in self.counts:
          count.assign_add(tf.ones([2000]))
        return interfaces.UpdateResult(
          {'loss': tf.reduce_sum(sample.data['y'])}
        )

    learner = make(Counting())
    done, torn, versions = threading.Event(), [], []

    def read():
      names = ['learner_steps', 'policy', 'critic']
      while not done.is_set():
        step, policy, critic = learner.get_variables(names)
        for value in policy + critic:
          if np.any(value != step):
            torn.append((step, value))
        versions.append(int(step))

    reader = threading.Thread(target=read)
    reader.start()
    try:
      for _ in range(150):
        learner.step()
    finally:
      done.set()
      reader.join(20)
    assert not reader.is_alive()
    assert not torn
    assert len(set(versions)) > 1


class TestSave:
  def test_resumes_as_if_never_stopped(self):
    # 4 steps are one after a target copy, so that the count matters as well.
    first = make(priority_updater=RecordingUpdater())
    for _ in range(4):
      first.step()
    state = first.save()
    second = make(
      LinearUpdate(seed=9),
      samples(start=4),
      priority_updater=RecordingUpdater(),
    )
    second.restore(state)
    assert second.steps == 4
    assert second.max_priority == first.max_priority
    assert_equal_states(second.save(), state)
    for _ in range(7):
      first.step()
      second.step()
      assert_equal_states(first.save(), second.save())
    assert first.save()['learner_steps'] == 11

  def test_mismatch_changes_nothing(self):
    learner = make()
    learner.step()
    before = learner.save()
    name = next(n for n, v in before.items() if np.shape(v) == (3,))
    state = dict(make(LinearUpdate(seed=3)).save())
    state['policy/0001/more'] = np.zeros(2)
    state[name] = np.zeros(4)
    del state['learner_steps']
    with pytest.raises(
      ValueError,
      match=r'learner_steps: expected \(\), found nothing; '
      rf'{name}: expected \(3,\), found \(4,\); '
      r'policy/0001/more: expected nothing, found \(2,\)',
    ):
      learner.restore(state)
    assert_equal_states(learner.save(), before)
    assert learner.steps == 1


class TestRestoreExported:
  def test_mismatch_changes_nothing(self):
    state = make().save()
    good, more = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([4.0])
    for variables, export in (([good, more], 'policy'), ([good], 'polic')):
      with pytest.raises(
        ValueError, match=f'{export}.*/000[01]/Variable:0: expected .*, found '
      ):
        learners.restore_exported(state, export, variables)
      assert good.numpy().tolist() == [1, 2, 3]
      assert more.numpy().tolist() == [4]


class _SampleWithTargets(LinearUpdate):
  def __call__(self, sample):
    return super().__call__(sample._replace(data=sample.data.data))


def test_target_age_is_that_at_the_step_that_takes_the_batch():
  sample = next(samples())
  versions = tf.constant([0, 3], tf.int64)
  batch = sample._replace(
    data=types.SampleWithTargets(sample.data, (), versions)
  )
  logger = RecordingLogger()
  learner = learners.GradientLearner(
    _SampleWithTargets(), iter([batch] * 6), agent_batches.spec_of(batch),
    logger=logger,
  )  # fmt: skip
  for _ in range(6):
    learner.step()
  # The sixth step begins with variables of step 5: (5 − 0 + 5 − 3) / 2.
  assert [row['target_age'] for row in logger.rows[4:]] == [2.5, 3.5]
