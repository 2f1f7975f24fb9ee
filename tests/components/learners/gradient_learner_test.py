"""Tests of the gradient learner, and of its handling of divergence."""

import os
import threading

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from repertory.components import interfaces, learners, networks, specs, types
from repertory.components.config import settings as settings_lib
from repertory.components.runtime import compilation
from support.agents import agent_batches
from support.system import rare_cases, real_disk_errors

_LARGEST = float(np.finfo(np.float32).max)
# The leaf whose largest numbers overflow: not rewards with CRR and D4PG, whose
# support clips them, and BC does not use them.
_LEAVES = {
  name: 'observation' if name in ('bc', 'crr', 'd4pg') else 'reward'
  for name in agent_batches.AGENTS
}


class _Linear(interfaces.Update):
  """Fits y = x · w by Adam, with a target copied in every third step."""

  def __init__(self, seed=0):
    super().__init__()
    random = np.random.default_rng(seed)
    self.weights = tf.Variable(random.normal(size=[2]), dtype=tf.float32)
    self.target = tf.Variable(tf.zeros([2]))
    self.optimizer = snt.optimizers.Adam(0.1)
    self.copy = learners.PeriodicCopy([self.weights], [self.target], 3)

  @property
  def exports(self):
    return {'policy': [self.weights], 'target': [self.target]}

  def __call__(self, sample):
    with tf.GradientTape() as tape:
      x, y = sample.data['x'], sample.data['y']
      errors = y - tf.linalg.matvec(x, self.weights)
      loss = tf.reduce_mean(errors**2)
    gradients = tape.gradient(loss, [self.weights])
    self.optimizer.apply(gradients, [self.weights])
    self.copy()
    return interfaces.UpdateResult({'loss': loss}, tf.abs(errors))


class _Recorder:
  """Stands in for a logger and a priority updater; records its arguments."""

  def __init__(self):
    self.rows, self.keys, self.priorities = [], [], []

  def write(self, row):
    self.rows.append(row)

  def update(self, keys, priorities):
    assert keys.dtype == np.uint64
    self.keys.append(keys.tolist())
    self.priorities.append(priorities)


def _batch(key, y=1.0):
  return types.Sample(
    data={'x': tf.constant([[1.0, -1.0]]), 'y': tf.constant([y])},
    keys=tf.constant([key], tf.uint64),
    probabilities=tf.constant([0.1], tf.float64),
    table_sizes=tf.constant([10], tf.int64),
  )


def _make(targets, update=None, recorder=None, jit_compile=False, **divergence):
  """Creates a learner whose i-th batch has key i and the i-th target."""
  batches = [_batch(i, y) for i, y in enumerate(targets)]
  return learners.GradientLearner(
    update or _Linear(),
    iter(batches),
    agent_batches.spec_of(batches[0]),
    logger=recorder,
    priority_updater=recorder,
    jit_compile=jit_compile,
    divergence=learners.Divergence(**divergence),
  )


def _step(learner, times):
  for _ in range(times):
    learner.step()


def _assert_equal(one, other, but=()):
  assert one.keys() == other.keys()
  for name in one.keys() - set(but):
    np.testing.assert_array_equal(one[name], other[name], err_msg=name)


class TestStep:
  def test_takes_a_batch_and_updates(self):
    recorder, update = _Recorder(), _Linear()
    w, x = update.weights.numpy(), np.array([1.0, -1.0])
    targets = [0.5, -1.0, 2.0, 0.0, 7.0]
    learner = _make(targets, update, recorder, jit_compile=True)
    np.testing.assert_array_equal(update.weights, w)  # Tracing learns nothing.
    # Adam by hand, https://arxiv.org/abs/1412.6980, algorithm 1.
    m, v, largest = np.zeros(2), np.zeros(2), 1.0
    for t, y in enumerate(targets, 1):
      learner.step()
      error = y - x @ w
      gradient = -2 * error * x
      m = 0.9 * m + 0.1 * gradient
      v = 0.999 * v + 0.001 * gradient**2
      w = w - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
      largest = max(largest, abs(error))
      assert learner.steps == t
      np.testing.assert_allclose(update.weights, w, rtol=1e-4, atol=1e-6)
      assert set(recorder.rows[-1]) == {'loss'}
      np.testing.assert_allclose(recorder.rows[-1]['loss'], error**2, rtol=1e-4)
      assert recorder.keys[-1] == [t - 1]
      np.testing.assert_allclose(
        recorder.priorities[-1], [abs(error)], rtol=1e-4
      )
      np.testing.assert_allclose(learner.max_priority, largest, rtol=1e-5)
    assert len(recorder.rows) == len(recorder.keys) == 5

  def test_updater_needs_priorities(self):
    class Uniform(_Linear):
      def __call__(self, sample):
        return super().__call__(sample)._replace(priorities=None)

    recorder = _Recorder()
    _make([1.0], Uniform(), recorder).step()
    assert recorder.keys == []

  def test_xla_is_used_if_asked_for(self):
    class Uncompilable(_Linear):
      def __call__(self, sample):
        tf.py_function(lambda: None, [], [])  # XLA cannot call Python.
        return super().__call__(sample)

    _make([1.0], Uncompilable()).step()
    with pytest.raises(
      settings_lib.SettingError, match=r'calls tf\.py_function,'
    ):
      _make([1.0], Uncompilable(), jit_compile=True)

  def test_target_age_is_that_at_the_step_that_takes_the_batch(self):
    class WithTargets(_Linear):
      def __call__(self, sample):
        return super().__call__(sample._replace(data=sample.data.data))

    sample, versions = _batch(0), tf.constant([0, 3], tf.int64)
    batch = sample._replace(
      data=types.SampleWithTargets(sample.data, (), versions)
    )
    logger = _Recorder()
    learner = learners.GradientLearner(
      WithTargets(), iter([batch] * 6), agent_batches.spec_of(batch),
      logger=logger,
    )  # fmt: skip
    _step(learner, 6)
    # The sixth step begins with variables of step 5: (5 − 0 + 5 − 3) / 2.
    assert [row['target_age'] for row in logger.rows[4:]] == [2.5, 3.5]


class TestGetVariables:
  def test_one_nest_per_name_in_the_order_asked_for(self):
    update = _Linear()
    learner = _make([1.0] * 4, update)
    _step(learner, 4)
    steps, target, policy, again = learner.get_variables(
      ['learner_steps', 'target', 'policy', 'policy']
    )
    assert steps == 4
    np.testing.assert_array_equal(target, [update.target.numpy()])
    for nest in (policy, again):
      np.testing.assert_array_equal(nest, [update.weights.numpy()])
    assert not np.array_equal(target, policy)

  def test_unknown_name(self):
    with pytest.raises(
      KeyError, match=r"'polcy'.*learner_steps.*max_priority.*policy.*target"
    ):
      _make([1.0]).get_variables(['policy', 'polcy'])

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

    learner = _make([1.0] * 150, Counting())
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
      _step(learner, 150)
    finally:
      done.set()
      reader.join(20)
    assert not reader.is_alive()
    assert not torn
    assert len(set(versions)) > 1


class TestSave:
  def test_resumes_as_if_never_stopped(self):
    # 4 steps are one after a target copy, so that the count matters as well.
    targets = np.linspace(-3, 5, 9).tolist()
    first = _make(targets, recorder=_Recorder())
    _step(first, 4)
    state = first.save()
    second = _make(targets[4:], _Linear(seed=9), _Recorder())
    second.restore(state)
    assert second.steps == 4
    assert second.max_priority == first.max_priority
    _assert_equal(second.save(), state)
    for _ in range(5):
      first.step()
      second.step()
      _assert_equal(first.save(), second.save())
    assert first.save()['learner_steps'] == 9

  def test_mismatch_changes_nothing(self):
    learner = _make([1.0])
    learner.step()
    before = learner.save()
    name = next(n for n, v in before.items() if np.shape(v) == (2,))
    state = dict(_make([1.0], _Linear(seed=3)).save())
    state['policy/0001/more'] = np.zeros(2)
    state[name] = np.zeros(4)
    del state['learner_steps']
    with pytest.raises(
      ValueError,
      match=r'learner_steps: expected \(\), found nothing; '
      rf'{name}: expected \(2,\), found \(4,\); '
      r'policy/0001/more: expected nothing, found \(2,\)',
    ):
      learner.restore(state)
    _assert_equal(learner.save(), before)

  def test_export_that_does_not_fit_changes_nothing(self):
    state = _make([1.0]).save()
    good, more = tf.Variable([1.0, 2.0]), tf.Variable([4.0])
    for variables, export in (([good, more], 'policy'), ([good], 'polic')):
      with pytest.raises(
        ValueError, match=f'{export}.*/000[01]/Variable:0: expected .*, found '
      ):
        learners.restore_exported(state, export, variables)
      assert good.numpy().tolist() == [1, 2]
      assert more.numpy().tolist() == [4]


def _poisoned(sample, leaf):
  value = getattr(sample.data, leaf)
  bad = tf.fill(value.shape, tf.constant(_LARGEST))
  return sample._replace(data=sample.data._replace(**{leaf: bad}))


class _Keeping(_Linear):
  """Keeps an infinite target that its metrics do not show."""

  def __init__(self, kept):
    super().__init__()
    self._kept = kept

  def __call__(self, sample):
    y = sample.data['y']
    self._kept.update(y[:, None], tf.ones([1, 1], tf.bool))
    finite = tf.where(tf.math.is_finite(y), y, tf.zeros_like(y))
    sample = sample._replace(data={**sample.data, 'y': finite})
    return super().__call__(sample)


class _Price(learners.DualVariable):
  """Dual variable that its update sets to the sum of the values."""

  def __init__(self):
    super().__init__(1.0, [], 'price')

  def update(self, values, mask):
    del mask
    self._raw.assign(tf.reduce_sum(values))


_AGENTS = rare_cases.daily(agent_batches.AGENTS, ['dqn'])


class TestAgents:
  @pytest.mark.parametrize('name', _AGENTS)
  def test_skipped_batch_might_as_well_never_have_come(self, name):
    spec, leaf = agent_batches.AGENTS[name].spec, _LEAVES[name]
    builder = agent_batches.make_builder(name)
    good = [agent_batches.make_batch(builder, spec, seed) for seed in range(3)]
    bad = _poisoned(agent_batches.make_batch(builder, spec, 9), leaf)
    assert np.isfinite(getattr(bad.data, leaf)).all()

    def make(batches):
      tf.random.set_seed(1)
      return learners.GradientLearner(
        builder.make_update(builder.make_network(spec), spec),
        iter(batches),
        agent_batches.spec_of(bad),
        divergence=learners.Divergence('skip'),
      )

    learner, twin = make([*good[:2], bad, bad, good[2]]), make(good)
    _step(learner, 2)
    _step(twin, 2)
    before = learner.save()
    _assert_equal(before, twin.save())
    _step(learner, 2)
    _assert_equal(learner.save(), before, but=['learner_steps'])
    assert learner.steps == 4
    learner.step()
    twin.step()
    _assert_equal(learner.save(), twin.save(), but=['learner_steps'])
    changed = [
      key
      for key, value in learner.save().items()
      if not np.array_equal(value, before[key])
    ]
    # Some agents improve the policy only in every second step.
    assert set(changed) > {'learner_steps'}


class TestSkip:
  def test_counts_logs_and_writes_no_priorities(self):
    recorder = _Recorder()
    targets = [1.0, _LARGEST, 2.0, np.nan, np.inf, 3.0]
    learner = _make(targets, recorder=recorder, action='skip')
    _step(learner, 6)
    assert learner.steps == 6
    assert [row['skipped_updates'] for row in recorder.rows] == [
      *[0, 1, 1, 2, 3, 3]
    ]
    assert recorder.keys == [[0], [2], [5]]
    assert learner.max_priority < 10
    twin = _make([1.0, 2.0, 3.0])
    _step(twin, 3)
    _assert_equal(
      learner.save(), twin.save(), but=['learner_steps', 'max_priority']
    )

  @pytest.mark.parametrize(
    'make_kept',
    [
      pytest.param(
        lambda: networks.ObservationNormalizer(specs.Array((), np.float32)),
        id='moments',
      ),
      pytest.param(_Price, id='dual_variable'),
    ],
  )
  def test_state_that_is_not_finite_is_enough(self, make_kept):
    recorder = _Recorder()
    learner = _make(
      [1.0, 2.0, np.inf, 3.0],
      _Keeping(make_kept()),
      recorder,
      action='skip',
    )
    _step(learner, 2)
    before = learner.save()
    learner.step()
    assert recorder.rows[-1]['skipped_updates'] == 1
    _assert_equal(learner.save(), before, but=['learner_steps'])
    learner.step()
    twin = _make([1.0, 2.0, 3.0], _Keeping(make_kept()))
    _step(twin, 3)
    _assert_equal(
      learner.save(), twin.save(), but=['learner_steps', 'max_priority']
    )

  def test_too_many_in_a_row_stop_the_learner(self, tmp_path):
    bad = np.nan
    targets = [bad, bad, 1.0, bad, bad, bad]
    learner = _make(
      targets, action='skip', max_skips=2, directory=str(tmp_path / 'new')
    )
    _step(learner, 5)
    before = learner.save()
    with pytest.raises(
      FloatingPointError, match='step 6, as in all of the last 3:'
    ):
      learner.step()
    _assert_equal(learner.save(), before, but=['learner_steps'])
    assert os.listdir(tmp_path / 'new') == ['step_6.npz']


class TestStop:
  @pytest.mark.parametrize('jit_compile', [False, True])
  def test_saves_the_batch_and_keeps_the_variables(self, tmp_path, jit_compile):
    learner = _make(
      [1.0, 2.0, _LARGEST], jit_compile=jit_compile, directory=str(tmp_path)
    )
    _step(learner, 2)
    before = learner.save()
    with pytest.raises(FloatingPointError) as error:
      learner.step()
    _assert_equal(learner.save(), before, but=['learner_steps'])
    path = tmp_path / 'step_3.npz'
    message = str(error.value)
    assert 'learner step 3:' in message
    assert "'loss': inf" in message
    assert str(path) in message
    assert 'not finite in it: nothing' in message
    assert os.listdir(tmp_path) == [path.name]
    with np.load(path, allow_pickle=False) as arrays:
      assert set(arrays) == {
        *['data/x', 'data/y', 'keys', 'probabilities', 'table_sizes']
      }
      assert arrays['data/y'].tolist() == [_LARGEST]
      assert arrays['keys'].tolist() == [2]

  def test_file_that_cannot_be_written_hides_nothing(self, tmp_path):
    (tmp_path / 'file').write_text('')
    learner = _make([np.nan], directory=str(tmp_path / 'file' / 'below'))
    with pytest.raises(
      FloatingPointError, match=r'step 1: .*could not be saved.*file'
    ):
      learner.step()

  def test_a_full_disk_leaves_no_partial_file(self, tmp_path):
    learner = _make([np.nan], directory=str(tmp_path))
    with (
      real_disk_errors.file_size_limit(100),
      pytest.raises(FloatingPointError, match='could not be saved'),
    ):
      learner.step()
    assert os.listdir(tmp_path) == []


class _Flattening(snt.Module):
  """Has a layer with the name of a method of `tf.Module`."""

  def __init__(self):
    super().__init__()
    self._flatten = snt.Flatten()


class TestVariables:
  def test_networks_may_name_their_layers_as_they_like(self):
    update = _Linear()
    update.network = _Flattening()
    learner = _make([1.0], update)
    learner.step()
    assert learner.steps == 1

  def test_update_that_hides_its_gradient_stops_in_the_next_step(self):
    # √0 has a slope of infinity, and a loss of 0.
    class Hiding(interfaces.Update):
      def __init__(self):
        super().__init__()
        self.network = snt.Linear(1, False, snt.initializers.Ones())
        self.network(tf.zeros([1, 2]))
        self.optimizer = snt.optimizers.SGD(0.1)

      @property
      def exports(self):
        return {'policy': self.network.variables}

      def __call__(self, sample):
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(tf.sqrt(self.network(sample.data['x'])))
        gradients = tape.gradient(loss, self.network.trainable_variables)
        self.optimizer.apply(gradients, self.network.trainable_variables)
        return interfaces.UpdateResult({'loss': loss})

    learner = _make([1.0, 1.0], Hiding(), action='skip')
    learner.step()
    message = r'these are not: policy/0000/linear/w:0.*norms of its gradients'
    with pytest.raises(FloatingPointError, match=message):
      learner.save()
    with pytest.raises(FloatingPointError, match=message):
      learner.step()


class TestEager:
  """Sonnet's Adam creates its moments when it is first applied."""

  def test_first_update_is_undone_with_the_variables_that_it_makes(self):
    with compilation.eagerly(True):
      learner = _make([np.inf, 1.0, np.inf, 2.0], action='skip')
    twin = _make([1.0, 2.0])
    _step(learner, 4)
    _step(twin, 2)
    assert learner.steps == 4
    saved, expected = learner.save(), twin.save()
    for name in expected.keys() - {'learner_steps', 'max_priority'}:
      np.testing.assert_allclose(saved[name], expected[name], 1e-5)
