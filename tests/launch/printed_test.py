"""Tests of the rotation of output files."""

import os

import pytest

from repertory.launch.platform import printed


@pytest.fixture(autouse=True)
def _small(monkeypatch):
  monkeypatch.setattr(printed, '_MAX_BYTES', 100)


@pytest.mark.parametrize('name', ['native.log', 'nodes/learner/0'])
def test_a_long_file_is_set_aside(tmp_path, name):
  path = tmp_path / name
  path.parent.mkdir(parents=True, exist_ok=True)
  older = path.with_name(path.name + '.previous')
  for text in ('a' * 101, 'b' * 102):
    path.write_text(text)
    printed.shorten(str(tmp_path))
    assert path.read_text() == ''
    assert older.read_text() == text
  path.write_text('c' * 100)
  printed.shorten(str(tmp_path))
  assert path.read_text() == 'c' * 100
  assert os.listdir(path.parent).count(older.name) == 1
