"""Tests of Dispatch and Terminal."""

import io

import numpy as np
import pytest

from repertory.components import loggers
from support.launch import recording_logger


def test_failing_sinks_do_not_keep_rows_from_others():
  error = OSError('disk full')
  errors = (error, None, KeyError('b'), None)
  sinks = [recording_logger.RecordingLogger(each) for each in errors]
  logger = loggers.Dispatch(sinks)
  for call in (lambda: logger.write({'a': 1}), logger.close):
    with pytest.raises(
      RuntimeError, match=r'2 of 4 .*disk full.*KeyError'
    ) as e:
      call()
    assert e.value.__cause__ is error
  for sink in sinks:
    assert sink.rows == [{'a': 1}]
    assert sink.num_closed == 1


def test_lines_of_a_terminal():
  stream = io.StringIO()
  logger = loggers.Terminal('learner', stream)
  logger.write({'steps': 1234567, 'loss': np.float32(0.123456)})
  logger.write({'note': 'one\ntwo', 'nothing': None, 'rate': 1652.34})
  logger.close()
  assert stream.getvalue() == (
    'learner: steps 1234567 | loss 0.123456\n'
    'learner: note one two | nothing None | rate 1652.34\n'
  )
  assert not stream.closed
