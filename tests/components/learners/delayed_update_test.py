"""Tests of `components/learners/delayed_update.py`."""

import pytest
import tensorflow as tf

from repertory.components import learners


def make(period, names=('after',)):
  """Adds its argument to a variable, in every `period`-th call."""
  total = tf.Variable(1.0)
  update = learners.DelayedUpdate(
    lambda x: {'after': total.assign_add(x)}, names, period
  )
  return total, update


@pytest.mark.parametrize('how', ['eager', 'function', 'xla'])
def test_is_made_at_every_multiple_of_the_period(how):
  total, update = make(3)
  call = update
  if how != 'eager':
    call = tf.function(update, jit_compile=how == 'xla', autograph=False)
  totals, found = [], []
  for i in range(1, 9):
    found.append(float(call(tf.constant(10.0 * i))['after']))
    totals.append(float(total))
  # 1 + 30 in the third call, and 60 more in the sixth.
  assert totals == [1, 1, 31, 31, 31, 91, 91, 91]
  assert found == [0, 0, 31, 31, 31, 91, 91, 91]


def test_a_period_of_one_is_every_call():
  total, update = make(1)
  assert float(update(2.0)['after']) == float(total) == 3
  assert float(update(2.0)['after']) == float(total) == 5


def test_count_and_metrics_are_saved_and_not_trained():
  _, update = make(2)
  update(5.0)
  update(5.0)
  assert sorted(float(v) for v in update.variables) == [2, 6]
  assert not update.trainable_variables


def test_refuses_period():
  with pytest.raises(ValueError, match='period must be at least 1, got 0'):
    make(0)


def test_refuses_other_metrics():
  _, update = make(1, ['before'])
  with pytest.raises(ValueError, match=r"metrics \['before'\], .*'after'"):
    update(1.0)
