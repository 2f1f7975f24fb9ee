"""Tests of CsvFile and JsonlFile, read back from the disk."""

import csv
import json
import os

import numpy as np
import pytest

from repertory.components import loggers
from support.system import real_disk_errors


def _read(path):
  with open(path, newline='', encoding='utf-8') as file:
    return list(csv.reader(file))


def _write(path, *rows):
  logger = loggers.CsvFile(path)
  for row in rows:
    logger.write(row)
  logger.close()


@pytest.fixture(name='path')
def _path(tmp_path):
  return tmp_path / 'made' / 'rows.csv'


def test_rows_under_one_header(path):
  logger = loggers.CsvFile(path)
  logger.write({'a': 2**60 + 1, 'b': np.float32(0.5)})
  logger.write({'b': 0.1 + 0.2, 'a': 'x, "y"'})
  # Before it is closed, too.
  assert _read(path) == [
    ['a', 'b'], [str(2**60 + 1), '0.5'], ['x, "y"', '0.30000000000000004'],
  ]  # fmt: skip
  logger.close()


def test_missing_none_and_nonfinite(path):
  nan = np.float32('nan')
  _write(path, {'a': nan, 'b': -np.inf}, {'a': None}, {'b': 1})
  assert _read(path) == [['a', 'b'], ['nan', '-inf'], ['', ''], ['', '1']]


def test_new_columns_widen_the_header_also_of_a_resumed_run(path):
  _write(path, {'a': 1}, {'b': 2, 'a': 3})
  _write(path, {'b': 5, 'a': 6})
  _write(path, {'c, d': 4})
  assert _read(path) == [
    ['a', 'b', 'c, d'],
    ['1', '', ''],
    ['3', '2', ''],
    ['6', '5', ''],
    ['', '', '4'],
  ]
  assert os.listdir(path.parent) == ['rows.csv']


def test_failed_widening_leaves_the_old_file_in_use(path, monkeypatch):
  logger = loggers.CsvFile(path)
  logger.write({'a': 1})

  def fail(source, target):
    raise OSError('no room')

  with monkeypatch.context() as patched:
    patched.setattr(os, 'replace', fail)
    with pytest.raises(OSError, match=r'no room'):
      logger.write({'b': 2})
  logger.write({'a': 3})
  logger.write({'b': 4})
  logger.close()
  assert _read(path) == [['a', 'b'], ['1', ''], ['3', ''], ['', '4']]


@pytest.mark.parametrize('torn', [b'\0\xff', b''], ids=repr)
def test_torn_last_row_is_dropped(path, torn, caplog):
  _write(path, {'a': 1, 'b': 2})
  with open(path, 'ab') as file:
    file.write(torn)
  _write(path, {'a': 3, 'b': 4})
  assert (f'{len(torn)} bytes: {path}' in caplog.text) == bool(torn)
  assert _read(path) == [['a', 'b'], ['1', '2'], ['3', '4']]


@pytest.mark.parametrize('content', ['', 'a,b'])
def test_file_without_whole_header_gets_one(path, content):
  path.parent.mkdir()
  path.write_text(content, encoding='utf-8')
  _write(path, {'c': 1})
  assert _read(path) == [['c'], ['1']]


def test_row_is_always_one_line(path):
  _write(path, {'a': 'one\ntwo\r\nthree', 'b': [1, 2], 'c\nd': 3})
  lines = path.read_text(encoding='utf-8').splitlines()
  assert lines == ['a,b,c d', 'one two three,"[1, 2]",3']


def test_link_is_followed(path, tmp_path):
  _write(path, {'a': 1})
  link = tmp_path / 'link.csv'
  link.symlink_to(path)
  _write(link, {'b': 2})
  assert link.is_symlink()
  assert _read(path) == [['a', 'b'], ['1', ''], ['', '2']]


@pytest.mark.parametrize('new', [{'a': 2}, {'b': 2}])
def test_removed_file_begins_again(path, new):
  logger = loggers.CsvFile(path)
  logger.write({'a': 1})
  path.unlink()
  path.parent.rmdir()
  logger.write(new)
  header, row = _read(path)
  assert dict(zip(header, row)) == {'a': '', **dict.fromkeys(new, '2')}


def test_no_rows_make_no_header(path):
  logger = loggers.CsvFile(path)
  logger.write_all([])
  logger.write({})
  logger.write({'a': 1})
  assert _read(path) == [['a'], ['1']]


def test_row_that_does_not_fit_leaves_no_trace(path):
  logger = loggers.JsonlFile(path)
  logger.write({'a': 1})
  with real_disk_errors.file_size_limit(300):
    with pytest.raises(OSError, match='too large'):
      logger.write({'a': 'x' * 300})
    logger.write({'a': 2})
  assert path.read_text() == '{"a": 1}\n{"a": 2}\n'


class TestJsonl:
  @pytest.fixture(name='path')
  def _path(self, tmp_path):
    return tmp_path / 'made' / 'rows.jsonl'

  def _write(self, path, *rows):
    logger = loggers.JsonlFile(path)
    for row in rows:
      logger.write(row)
    logger.close()

  def _read(self, path):
    def refuse(constant):
      raise ValueError(f'not JSON: {constant}')

    lines = path.read_text(encoding='utf-8').splitlines()
    return [json.loads(line, parse_constant=refuse) for line in lines]

  def test_nonfinite_values_are_null(self, path):
    row = {'a': float('nan'), 'b': np.float32('inf'), 'c': [1.0, -np.inf]}
    self._write(path, {**row, 'd': {'e': np.nan, 'f': 2}}, {'g': 'x\ny'})
    assert self._read(path) == [
      {'a': None, 'b': None, 'c': [1.0, None], 'd': {'e': None, 'f': 2}},
      {'g': 'x\ny'},
    ]


@pytest.mark.parametrize(
  ('make', 'content', 'message'),
  [
    (loggers.CsvFile, b'a,b\n1,\xff\xfe\n3,4\n', 'line 2 is not text'),
    (loggers.CsvFile, b'\x89PNG\r', 'line 1 is not text'),
    (loggers.CsvFile, b'a,b,a\n', 'without repeated columns'),
    (loggers.CsvFile, b'1,2\n3,4\n', 'header of names'),
    (loggers.CsvFile, b'a,b\n1,2,3\n', 'at most 2 columns'),
    (loggers.CsvFile, b'a,b\n1,"2\n3,4\n', 'unexpected end'),
    (loggers.JsonlFile, b'{"a": 1}\n[1]\n', 'line 2 is not a JSON object'),
  ],
)
def test_garbled_file_is_refused_and_left_alone(path, make, content, message):
  path.parent.mkdir()
  path.write_bytes(content)
  with pytest.raises(loggers.GarbledError, match=message) as caught:
    make(path)
  assert str(path) in str(caught.value)
  assert path.read_bytes() == content
