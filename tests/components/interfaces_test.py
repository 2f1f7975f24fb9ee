"""Tests of the checks of policies and updates in their first calls."""

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from repertory.components import interfaces, learners, types
from repertory.components.runtime import compilation
from repertory.launch.coordination import logs

_SAMPLE = types.Sample(
  data=tf.ones([4, 3]),
  keys=tf.range(4),
  probabilities=tf.ones([4], tf.float64),
  table_sizes=tf.ones([4], tf.int64),
)


class _Update(interfaces.Update):
  """Returns a given result; has parts whose variables come late."""

  def __init__(self, result=None, parts=()):
    super().__init__()
    self.network = snt.Linear(1, name='main')
    self.network(_SAMPLE.data)
    self.parts = list(parts)
    self.optimizer = snt.optimizers.Adam(0.1)
    self.result = result or interfaces.UpdateResult({})

  def __call__(self, sample):
    for part in self.parts:
      part(sample.data)
    # Sonnet's optimizer creates its moments now.
    variables = self.network.trainable_variables
    self.optimizer.apply([tf.zeros_like(v) for v in variables], variables)
    return self.result

  @property
  def exports(self):
    parts = [v for part in self.parts for v in part.variables]
    return {'policy': [*self.network.variables, *parts]}


class Counter(snt.Module):
  """Has an untrained variable, created in its first call."""

  @snt.once
  def _create(self):
    self.count = tf.Variable(0, trainable=False, name='count')

  def __call__(self, x):
    self._create()


def _trace(update):
  guarded = learners.undone_unless_finite(update)
  specs = compilation.specs_of(_SAMPLE)
  return compilation.CompiledFunction(
    lambda sample: tuple(guarded(sample)), (specs,), jit_compile=False
  )


@pytest.mark.parametrize('call', [
  lambda update: interfaces.call_update(update, _SAMPLE), _trace,
])  # fmt: skip
def test_variables_that_come_late_are_named(call):
  parts = [snt.Linear(2, name='head'), Counter()]
  with pytest.raises(ValueError, match='first call of _Update') as error:
    call(_Update(parts=parts))
  message = str(error.value)
  for name in ('head/w:0 [3, 2]', 'head/b:0 [2]', 'counter/count:0 []'):
    assert name in message
  # Neither existing ones, nor the moments of the optimizer.
  assert 'main' not in message
  assert 'networks.create_variables' in message


def test_moments_of_an_optimizer_may_come_late():
  update = _Update()
  num_variables = len(update.variables)
  _trace(update)
  assert len(update.variables) == num_variables + 4  # m and v of w and b.


@pytest.mark.parametrize(('result', 'message'), [
  ((), r'_Update must return an UpdateResult\(metrics, priorities\), got a '),
  (
    interfaces.UpdateResult({'loss': 1.0, 'error': tf.ones([4])}),
    r"Metric 'error' of _Update must be a scalar, got shape \[4\]",
  ),
  (interfaces.UpdateResult({'count': 1.0}), "Metric 'count' .* another name"),
  (
    interfaces.UpdateResult({}, tf.ones([])),
    r'Priorities of _Update must have the shape of the items, \[4\], got \[\]',
  ),
])  # fmt: skip
def test_wrong_results_are_named(result, message):
  update = _Update()
  update.result = result
  with pytest.raises(ValueError, match=message):
    _trace(update)
  # Also within several updates of a learner step, whose means would hide it.
  series = learners.UpdateSeries(update, 1)
  with pytest.raises(ValueError, match=message):
    _trace(series)


def test_metrics_have_other_names_than_the_position_in_logs():
  for name in logs._POSITION:
    update = _Update(interfaces.UpdateResult({name: 1.0}))
    with pytest.raises(ValueError, match=f"Metric '{name}' of _Update"):
      _trace(update)


class _Policy(interfaces.Policy):
  def __init__(self, output):
    super().__init__()
    self.output = output

  def initial_state(self, environment_ids):
    return ()

  def step(self, observation, state):
    return self.output(observation)


@pytest.mark.parametrize(('output', 'message'), [
  (lambda x: None, r'_Policy.step must return a PolicyOutput\(.*, got None'),
  (lambda x: x, 'must return a PolicyOutput.*, got a EagerTensor'),
  (
    lambda x: interfaces.PolicyOutput(snt.Linear(2, name='head')(x), (), ()),
    r'the first step of _Policy: head/w:0 \[3, 2\], head/b:0 \[2\]',
  ),
])  # fmt: skip
def test_wrong_steps_of_a_policy_are_named(output, message):
  with pytest.raises(ValueError, match=message):
    _Policy(output).act(tf.ones([4, 3]), np.ones([4], np.int32), ())


def test_update_that_returns_nothing_is_named():
  update = _Update()
  update.result = None
  with pytest.raises(ValueError, match=r'must return an Up.*, got None'):
    _trace(update)
