"""Tests of logs as columns, intact and broken."""

import numpy as np
import pytest

from repertory.launch.results import logs as logs_lib


@pytest.fixture
def folder(tmp_path):
  return tmp_path


def _read(folder, text, name='learner.csv'):
  (folder / name).write_bytes(text.encode())
  return logs_lib.Logs(str(folder))


def test_columns_are_numbers_or_text(folder):
  logs = _read(folder, 'steps,loss,node\n1,0.5,a\n2,,b\n3,inf,c\n')
  columns = logs['learner']
  np.testing.assert_array_equal(columns['steps'], [1, 2, 3])
  np.testing.assert_array_equal(columns['loss'], [0.5, np.nan, np.inf])
  assert list(columns['node']) == ['a', 'b', 'c']


def test_rows_from_before_a_column_was_added_lack_it(folder):
  columns = _read(folder, 'steps,loss,new\n1,0.5\n2,0.25,7\n')['learner']
  np.testing.assert_array_equal(columns['new'], [np.nan, 7])


def test_rows_of_a_lost_time_are_left_out(folder):
  # Killed after 40 and resumed at 20: 30 and 40 were repeated.
  columns = _read(
    folder, 'steps,loss\n10,1\n20,2\n30,3\n40,4\n20,5\n30,6\n50,7\n'
  )['learner']
  np.testing.assert_array_equal(columns['steps'], [10, 20, 20, 30, 50])
  np.testing.assert_array_equal(columns['loss'], [1, 2, 5, 6, 7])


def test_what_cannot_be_read_is_reported(folder):
  logs = _read(folder, 'a,b\n1,2,3\n')
  with pytest.raises(KeyError, match='learner'):
    logs['learner']
  assert len(logs.column('learner', 'a')) == 0
  (problem,) = logs.problems
  assert problem.startswith(f'{folder}/learner.csv: ')


@pytest.mark.parametrize('text', ['', 'steps,loss', 'steps,loss\n'])
def test_nothing_is_no_problem(folder, text):
  logs = _read(folder, text)
  assert not logs.get('learner')
  assert not logs.problems
  assert logs.last('learner', 'steps') is None


def test_last_number_is_that_of_the_last_whole_row(folder):
  rows = ''.join(f'{i},{i / 2}\n' for i in range(20_000))
  logs = _read(folder, f'steps,loss\n{rows}20000,1')
  assert logs.last('learner', 'steps') == 19_999
  assert logs.last('learner', 'loss') == 19_999 / 2
  assert logs.last('learner', 'other') is None


def test_lines_that_are_no_objects_are_left_out(folder):
  deep = '[' * 100_000
  lines = f'{{"node": "a"}}\n[1]\nx\n{deep}\n{{"node": "b"}}\n{{"n'
  logs = _read(folder, lines, 'nodes.jsonl')
  assert logs.rows('nodes') == [{'node': 'a'}, {'node': 'b'}]
