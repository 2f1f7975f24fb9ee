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


def test_dropping_is_reported(tmp_path, caplog):
  path = tmp_path / 'file'
  path.write_bytes(b'one\ntwo')
  torn_lines.repair(str(path), lambda line: False)
  assert '3 bytes' in caplog.text
  assert str(path) in caplog.text
