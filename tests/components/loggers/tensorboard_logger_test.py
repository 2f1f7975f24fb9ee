"""Tests of TensorBoard, read back from its events files."""

import math

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import loggers


def _read(directory):
  """Returns (step, value) pairs by tag, over all events files."""
  curves = {}
  for path in sorted(directory.glob('events.*')):
    for record in tf.data.TFRecordDataset(str(path)):
      event = tf.compat.v1.Event.FromString(record.numpy())
      for value in event.summary.value:
        number = tf.make_ndarray(value.tensor).item()
        curves.setdefault(value.tag, []).append((event.step, number))
  return curves


def test_curves(tmp_path):
  logger = loggers.TensorBoard(tmp_path, prefix='learner')
  logger.write({'steps': 10, 'loss': np.float32(0.5), 'mean return': 1})
  logger.write({'loss': tf.constant(0.25), 'steps': np.int64(20)})
  # Before it is closed, too.
  assert _read(tmp_path) == {
    'learner/loss': [(10, 0.5), (20, 0.25)],
    'learner/mean return': [(10, 1.0)],
  }
  logger.close()


def test_other_values(tmp_path):
  logger = loggers.TensorBoard(tmp_path)
  logger.write({'steps': 2**40, 'a': math.nan, 'b': -math.inf, 'c': 2**70})
  logger.write({'steps': 1, 'text': 'x', 'none': None, 'list': [1], 'd': True})
  logger.close()
  curves = _read(tmp_path)
  ((step, value),) = curves.pop('a')
  assert step == 2**40 and math.isnan(value)
  assert curves == {
    'b': [(2**40, -math.inf)], 'c': [(2**40, 2.0**70)], 'd': [(1, 1.0)],
  }  # fmt: skip


@pytest.mark.parametrize('row', [{'loss': 1.0}, {'steps': 'x', 'loss': 1.0}])
def test_row_without_step_is_refused(tmp_path, row):
  logger = loggers.TensorBoard(tmp_path)
  with pytest.raises(ValueError, match=r"data: expected .*'steps', found"):
    logger.write(row)
  logger.close()
