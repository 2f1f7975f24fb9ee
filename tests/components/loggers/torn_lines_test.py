"""Tests of torn_lines."""

import pytest

from repertory.components.loggers import torn_lines


@pytest.mark.parametrize(
  ('before', 'is_whole', 'after'),
  [
    (b'', False, b''),
    (b'one\ntwo\n', False, b'one\ntwo\n'),
    (b'one\ntwo', False, b'one\n'),
    (b'one\ntwo', True, b'one\ntwo\n'),
    (b'one', False, b''),
    (b'one', True, b'one\n'),
    # Longer than the blocks in which the file is searched.
    (b'one\n' + b'x' * 200_000, False, b'one\n'),
    (b'x' * 200_000, True, b'x' * 200_000 + b'\n'),
  ],
)
def test_repair(tmp_path, before, is_whole, after):
  path = tmp_path / 'file'
  path.write_bytes(before)
  torn_lines.repair(str(path), lambda line: is_whole)
  assert path.read_bytes() == after


def test_whole_torn_line_is_judged(tmp_path):
  path = tmp_path / 'file'
  path.write_bytes(b'one\n' + b'ab' * 70_000)
  judged = []

  def judge(line):
    judged.append(line)
    return False

  torn_lines.repair(str(path), judge)
  assert judged == [b'ab' * 70_000]


def test_dropping_is_reported(tmp_path, caplog):
  path = tmp_path / 'file'
  path.write_bytes(b'one\ntwo')
  torn_lines.repair(str(path), lambda line: False)
  assert '3 bytes' in caplog.text
  assert str(path) in caplog.text


def test_missing_file_stays_missing(tmp_path):
  torn_lines.repair(str(tmp_path / 'file'), lambda line: False)
  assert not list(tmp_path.iterdir())
