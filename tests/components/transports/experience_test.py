"""Tests of `components/transports/experience.py`."""

import pytest
import tensorflow as tf

from repertory.components import adders, replay
from repertory.components.transports import experience

_SIGNATURE = {'x': tf.TensorSpec((), tf.float32)}
_LIMIT = replay.RateLimit(1.0, min_size=1, error_buffer=10.0)
_QUEUE = replay.queue(_SIGNATURE, 50)
_UNIFORM = replay.uniform(_SIGNATURE, 50, _LIMIT, name='more')
_ACROSS = adders.Sequences(length=5, across_episodes=True)


def _make(items=_ACROSS, tables=(_QUEUE,), **settings):
  return experience.Experience(items, tables, 8, **settings)


@pytest.mark.parametrize('tables', [[], [_QUEUE, _QUEUE]])
def test_there_is_one_table(tables):
  names = [table.name for table in tables]
  with pytest.raises(ValueError) as error:
    _make(tables=tables)
  assert f'tables must be one table, got {names}' in str(error.value)


def test_items_sampled_at_random_have_no_bundles():
  bundled = _make(_ACROSS, tables=[_UNIFORM]).bundled(16)
  assert bundled.table.bundle_size == 1


def test_impossible_minimum_of_priorities_is_refused():
  with pytest.raises(ValueError, match=r'min_priority .* got 0\.0'):
    _make(min_priority=0.0)


def test_check_counts_the_items_of_all_environments():
  described = _make(
    adders.Transitions(3, 0.9),
    [replay.queue(_SIGNATURE, 8 + 3 * 4)],
    setting_names={'max_size': 'room'},
  )
  described.check(4)
  with pytest.raises(ValueError, match=r'^room of queue .* 8 \+ 15'):
    described.check(5)
