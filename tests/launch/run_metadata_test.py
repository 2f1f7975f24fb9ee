"""Tests of the metadata of runs."""

import json

import pytest

from repertory.components import loggers
from repertory.launch.experiments import failures
from repertory.launch.opening import run_metadata
from support.system import real_disk_errors

_STATUS = loggers.Status('title', steps=7, learner_steps=3, elapsed_seconds=2.5)


def _lines(folder):
  text = (folder / 'runs.jsonl').read_text()
  return [json.loads(line) for line in text.splitlines()]


def test_begin_is_written_before_the_block(tmp_path):
  with run_metadata.writing(str(tmp_path), {'topology': 'single'}) as finish:
    (begun,) = _lines(tmp_path)
    assert begun['topology'] == 'single'
    assert begun['begun'].endswith('+00:00')
    finish(_STATUS, None)
  ended = _lines(tmp_path)[1]
  assert ended['state'] == 'done'
  assert (ended['steps'], ended['learner_steps']) == (7, 3)


@pytest.mark.parametrize(
  ('error', 'expected'),
  [
    (
      failures.NodeError(failures.Failure('actor/1', 'Traceback\nBad: 1\n')),
      {'state': 'failed', 'node': 'actor/1', 'cause': 'Bad: 1'},
    ),
    (OSError('disk'), {'state': 'failed', 'cause': 'OSError: disk'}),
    (KeyboardInterrupt(), {'state': 'interrupted'}),
  ],
)
def test_exceptions_are_logged_and_propagate(tmp_path, error, expected):
  with (
    pytest.raises(type(error)) as caught,
    run_metadata.writing(str(tmp_path), {}) as finish,
  ):
    finish(_STATUS, None)
    raise error
  assert caught.value is error
  ended = _lines(tmp_path)[1]
  assert expected.items() <= ended.items()
  assert 'steps' not in ended  # The cause is unknown.


def test_runs_follow_one_another_behind_a_torn_line(tmp_path):
  (tmp_path / 'runs.jsonl').write_text('{"begun": "x"}\n{"ende')
  with run_metadata.writing(str(tmp_path), {}):
    pass
  assert [next(iter(row)) for row in _lines(tmp_path)] == [
    'begun', 'begun', 'ended',
  ]  # fmt: skip


def test_full_disk_ends_nothing(tmp_path):
  with (
    real_disk_errors.file_size_limit(0),
    run_metadata.writing(str(tmp_path), {}) as finish,
  ):
    finish(_STATUS, None)
  assert (tmp_path / 'runs.jsonl').read_text() == ''


def test_garbled_file_is_set_aside(tmp_path):
  (tmp_path / 'runs.jsonl').write_text('mine\n')
  with run_metadata.writing(str(tmp_path), {}):
    pass
  assert len(_lines(tmp_path)) == 2
  (aside,) = tmp_path.glob('runs.jsonl.*')
  assert aside.read_text() == 'mine\n'
