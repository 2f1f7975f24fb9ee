"""Tests of Dispatch."""

import pytest

from repertory.components import loggers


class _Recorder(loggers.Logger):
  def __init__(self, error=None):
    self.rows = []
    self.closed = False
    self._error = error

  def write(self, data):
    self.rows.append(dict(data))
    if self._error:
      raise self._error

  def close(self):
    self.closed = True
    if self._error:
      raise self._error


def test_all_get_each_row():
  sinks = [_Recorder(), _Recorder()]
  logger = loggers.Dispatch(sinks)
  logger.write({'a': 1})
  logger.write({'a': 2})
  logger.close()
  for sink in sinks:
    assert sink.rows == [{'a': 1}, {'a': 2}]
    assert sink.closed


def test_failing_sinks_do_not_keep_rows_from_others():
  error = OSError('disk full')
  sinks = [_Recorder(error), _Recorder(), _Recorder(KeyError('b')), _Recorder()]
  logger = loggers.Dispatch(sinks)
  for call in (lambda: logger.write({'a': 1}), logger.close):
    with pytest.raises(
      RuntimeError, match=r'2 of 4 .*disk full.*KeyError'
    ) as e:
      call()
    assert e.value.__cause__ is error
  for sink in sinks:
    assert sink.rows == [{'a': 1}]
    assert sink.closed
