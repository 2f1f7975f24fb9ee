"""Tests of `components/learners/divergence.py`, and of the learner with it."""

import os

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from repertory.components import interfaces, learners, networks, specs, types
from repertory.components.runtime import compilation
from support.agents import agent_batches
from support.system import rare_cases

_LARGEST = float(np.finfo(np.float32).max)
# The leaf whose largest numbers overflow: not rewards with CRR and D4PG, whose
# support clips them, and BC does not use them.
_LEAVES = {
  name: 'observation' if name in ('bc', 'crr', 'd4pg') else 'reward'
  for name in agent_batches.AGENTS
}


class _Linear(interfaces.Update):
  """Fits y = x · w; its metrics are up to the test."""

  def __init__(self, report=lambda loss: {'loss': loss}):
    super().__init__()
    self.weights = tf.Variable([1.0, 2.0])
    self.optimizer = snt.optimizers.Adam(0.1)
    self._report = report

  @property
  def exports(self):
    return {'policy': [self.weights]}

  def __call__(self, sample):
    with tf.GradientTape() as tape:
      x, y = sample.data['x'], sample.data['y']
      errors = y - tf.linalg.matvec(x, self.weights)
      loss = tf.reduce_mean(errors**2)
    gradients = tape.gradient(loss, [self.weights])
    self.optimizer.apply(gradients, [self.weights])
    return interfaces.UpdateResult(self._report(loss), tf.abs(errors))


class _Recorder:
  """Stands in for a logger and a priority updater; records its arguments."""

  def __init__(self):
    self.rows, self.keys = [], []

  def write(self, row):
    self.rows.append(row)

  def update(self, keys, priorities):
    del priorities
    self.keys.append(keys.tolist())


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


def _poisoned(sample, leaf):
  value = getattr(sample.data, leaf)
  bad = tf.fill(value.shape, tf.constant(_LARGEST))
  return sample._replace(data=sample.data._replace(**{leaf: bad}))


def _assert_equal(one, other, but=()):
  assert one.keys() == other.keys()
  for name in one.keys() - set(but):
    np.testing.assert_array_equal(one[name], other[name], err_msg=name)


class _Keeping(_Linear):
  """Keeps an infinite target that its metrics do not show."""

  def __init__(self, kept):
    super().__init__(report=lambda loss: {'size': tf.constant(1)})
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
    for _ in range(2):
      learner.step()
      twin.step()
    before = learner.save()
    _assert_equal(before, twin.save())
    for _ in range(2):
      learner.step()
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
    for _ in targets:
      learner.step()
    assert learner.steps == 6
    assert [row['skipped_updates'] for row in recorder.rows] == [
      *[0, 1, 1, 2, 3, 3]
    ]
    assert recorder.keys == [[0], [2], [5]]
    assert learner.max_priority < 10
    twin = _make([1.0, 2.0, 3.0])
    for _ in range(3):
      twin.step()
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
    for _ in range(2):
      learner.step()
    before = learner.save()
    learner.step()
    assert recorder.rows[-1]['skipped_updates'] == 1
    _assert_equal(learner.save(), before, but=['learner_steps'])
    learner.step()
    twin = _make([1.0, 2.0, 3.0], _Keeping(make_kept()))
    for _ in range(3):
      twin.step()
    _assert_equal(
      learner.save(), twin.save(), but=['learner_steps', 'max_priority']
    )

  def test_too_many_in_a_row_stop_the_learner(self, tmp_path):
    bad = np.nan
    targets = [bad, bad, 1.0, bad, bad, bad]
    learner = _make(
      targets, action='skip', max_skips=2, directory=str(tmp_path / 'new')
    )
    for _ in range(5):
      learner.step()
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
    learner.step()
    learner.step()
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
    for _ in range(4):
      learner.step()
    for _ in range(2):
      twin.step()
    assert learner.steps == 4
    saved, expected = learner.save(), twin.save()
    assert saved.keys() == expected.keys()
    for name in saved.keys() - {'learner_steps', 'max_priority'}:
      np.testing.assert_allclose(saved[name], expected[name], 1e-5)


@pytest.mark.parametrize(
  ('settings', 'message'),
  [
    ({'action': 'ignore'}, "action must be one of stop, skip; got 'ignore'"),
    ({'max_skips': -1}, 'max_skips must be at least 0, got -1'),
  ],
)
def test_wrong_settings(settings, message):
  with pytest.raises(ValueError, match=message):
    learners.Divergence(**settings)
