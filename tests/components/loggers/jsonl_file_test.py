"""Tests of JsonlFile, read back from the disk."""

import json

import numpy as np
import pytest

from repertory.components import loggers


def _refuse(constant):
  raise ValueError(f'not JSON: {constant}')


def _read(path):
  text = path.read_text(encoding='utf-8')
  assert not text or text.endswith('\n')
  return [
    json.loads(line, parse_constant=_refuse) for line in text.split('\n')[:-1]
  ]


def _write(path, *rows):
  logger = loggers.JsonlFile(path)
  for row in rows:
    logger.write(row)
  logger.close()


@pytest.fixture(name='path')
def _path(tmp_path):
  return tmp_path / 'made' / 'rows.jsonl'


def test_rows_keep_their_own_keys(path):
  _write(path, {'a': 1, 'b': 'x\ny'}, {'c': True}, {})
  assert _read(path) == [{'a': 1, 'b': 'x\ny'}, {'c': True}, {}]


def test_nonfinite_values_are_null(path):
  row = {'a': float('nan'), 'b': np.float32('inf'), 'c': [1.0, -np.inf]}
  _write(path, {**row, 'd': {'e': np.nan, 'f': 2}})
  assert _read(path) == [
    {'a': None, 'b': None, 'c': [1.0, None], 'd': {'e': None, 'f': 2}}
  ]


def test_torn_last_line_is_dropped(path):
  _write(path, {'a': 1})
  with open(path, 'a', encoding='utf-8') as file:
    file.write('{"a": 2')
  _write(path, {'a': 3})
  assert _read(path) == [{'a': 1}, {'a': 3}]


@pytest.mark.parametrize(
  ('content', 'message'),
  [
    (b'{"a": 1}\n\xff\n{"a": 2}\n', 'line 2 is not text'),
    (b'{"a": 1}\n[1]\n', 'line 2 is not a JSON object'),
    (b'\x89PNG\r', 'line 1 is not text'),
  ],
)
def test_garbled_file_is_refused_and_left_alone(tmp_path, content, message):
  path = tmp_path / 'rows.jsonl'
  path.write_bytes(content)
  with pytest.raises(loggers.GarbledError, match=message):
    loggers.JsonlFile(path)
  assert path.read_bytes() == content
