"""Tests of Aggregate."""

import math

import pytest

from repertory.components import loggers


class _Clock:
  now = 100.0

  def __call__(self):
    return self.now


@pytest.fixture(name='rows')
def _rows():
  return []


@pytest.fixture(name='clock')
def _clock():
  return _Clock()


def test_period_is_merged_into_one_row(rows, clock):
  logger = loggers.Aggregate(
    rows.append, 10, latest=('steps', 'mode'), clock=clock
  )
  # The first write after ten seconds is the third, which belongs to the row.
  for at, steps, value in ((101, 5, 1.0), (109, 9, 4.0), (112, 20, -2.0)):
    assert not rows
    clock.now = at
    logger.write({'steps': steps, 'return': value, 'mode': f'at {at}'})
  assert rows == [
    {
      'steps': 20,
      'return': (1 + 4 - 2) / 3,
      'return_min': -2.0,
      'return_max': 4.0,
      'mode': 'at 112',
      'count': 3,
    }
  ]


def test_nonfinite_values_are_counted_apart(rows, clock):
  logger = loggers.Aggregate(rows.append, 99, clock=clock)
  logger.write({'a': 1.0, 'b': math.nan})
  logger.write({'a': math.inf, 'b': -math.inf})
  logger.write({'a': 5.0, 'b': math.nan})
  logger.flush()
  (row,) = rows
  assert math.isnan(row.pop('b'))
  assert row == {
    'a': (1 + 5) / 2,
    'a_min': 1.0,
    'a_max': 5.0,
    'a_count': 2,
    'a_nonfinite': 1,
    'b_count': 0,
    'b_nonfinite': 3,
    'count': 3,
  }


def test_missing_values(rows, clock):
  logger = loggers.Aggregate(rows.append, 99, latest=('last',), clock=clock)
  logger.write({'a': 2, 'last': 'x', 'text': 'one'})
  logger.write({'a': None, 'last': None, 'text': 'two'})
  logger.write({})
  logger.close()
  assert rows == [
    {
      'a': 2.0,
      'a_min': 2,
      'a_max': 2,
      'a_count': 1,
      'last': 'x',
      'text': 'two',
      'count': 3,
    }
  ]


def test_close_hands_on_the_rest(rows, clock):
  logger = loggers.Aggregate(rows.append, 10, clock=clock)
  logger.write({'a': 1})
  logger.close()
  logger.close()
  assert [row['a'] for row in rows] == [1]


def test_failed_row_is_written_once(rows, clock):
  def write(row):
    rows.append(row)
    if len(rows) == 1:
      raise OSError('disk full')

  logger = loggers.Aggregate(write, 0, clock=clock)
  with pytest.raises(OSError, match=r'disk full'):
    logger.write({'a': 1})
  logger.write({'a': 2})
  assert [row['a'] for row in rows] == [1, 2]


@pytest.mark.parametrize(
  'row', [{'loss': 1.0, 'loss_min': 2.0}, {'count': 1}], ids=str
)
def test_entries_of_the_same_name_are_refused(rows, clock, row):
  logger = loggers.Aggregate(rows.append, 99, clock=clock)
  logger.write(row)
  with pytest.raises(ValueError, match=r'expected keys whose merged entries'):
    logger.close()
  assert not rows
