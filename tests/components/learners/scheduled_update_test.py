"""Tests of `components/learners/scheduled_update.py`."""

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import interfaces, learners
from repertory.components.config import schedules, settings


class _Update(interfaces.Update):
  """Logs a value that it reads."""

  def __init__(self, value, name):
    super().__init__(tf.Module())
    self._value = value
    self._name = name

  def __call__(self, sample):
    return interfaces.UpdateResult({self._name: 2 * self._value})


def _make(text, name='doubled'):
  found = {'rate': schedules.Schedule(text)}
  values = learners.make_values(found)
  return learners.ScheduledUpdate(_Update(values['rate'], name), found, values)


def _values(update, num_calls, jit_compile=False):
  call = tf.function(update, autograph=False, jit_compile=jit_compile)
  metrics = [call(()).metrics for _ in range(num_calls)]
  rates = [one['rate'].numpy() for one in metrics]
  np.testing.assert_array_equal(
    [one['doubled'] for one in metrics], 2 * np.array(rates)
  )
  return rates


@pytest.mark.parametrize(
  'text',
  [
    'linear(0.3,1e-6,steps=8)',
    'cosine(1,-2,steps=8)',
    'piecewise(1,0.25:1e-8,0.5:3,0.9:0,steps=8)',
  ],
)
def test_has_the_values_of_the_schedule(text):
  rates = _values(_make(text), 10, jit_compile=True)
  schedule = schedules.Schedule(text)
  expected = [schedule.value(min(t / 8, 1)) for t in range(10)]
  np.testing.assert_allclose(rates, np.array(expected, np.float32), rtol=1e-6)


def test_continues_from_its_variables():
  update, other = _make('linear(1,0,steps=4)'), _make('linear(1,0,steps=4)')
  assert _values(update, 2) == [1, 0.75]
  for one, theirs in zip(other.variables, update.variables, strict=True):
    assert not one.trainable
    one.assign(theirs)
  assert _values(other, 3) == [0.5, 0.25, 0]


def test_counts_more_steps_than_single_precision():
  update = _make(f'linear(0,1,steps={2**26})')
  update.variables[0].assign(2**25 + 1)
  assert update.variables[0].dtype == tf.int64
  [rate] = _values(update, 1)
  assert rate == pytest.approx(0.5, abs=1e-7)


def test_spans_the_run_without_a_length():
  update = _make('linear(1,0)')
  with pytest.raises(
    settings.SettingError,
    match=r'^rate must have a length in learner steps where that of the run is '
    r'unknown, got linear\(1,0\)\. Write linear\(1,0,steps=10000\), or call ',
  ):
    update(())
  learners.set_run_length(learners.UpdateSeries(update, 1), 2)
  assert _values(update, 3) == [1, 0.5, 0]


def test_refuses_metrics_of_its_names():
  with pytest.raises(ValueError, match='are logged; got rate'):
    _make('linear(1,0,steps=4)', name='rate')(())
