"""Tests of runs whose logs are removed, garbled or blocked."""

import json
import os
import re
import shutil

import pytest

from repertory import launch
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import directories
from support.environments import troubled_environments
from support.launch import log_files
from support.system import real_disk_errors


def _run(folder, topology='single', trouble=lambda: None, **settings):
  """Runs 600 steps, with trouble in the middle."""
  factory = troubled_environments.Troubled(2, 'step', trouble)
  experiment = troubled_environments.make_experiment(
    folder, factory, evaluation_episodes=0, **settings
  )
  return launch.run(experiment, topology, display=False)


@pytest.mark.parametrize('name', ['logs', 'checkpoints'])
def test_file_in_place_of_a_folder_is_refused(tmp_path, name):
  directory = tmp_path / 'run'
  directory.mkdir()
  (directory / name).write_text('mine')
  with pytest.raises(
    SettingError, match='must be a folder and is a file'
  ) as caught:
    _run(tmp_path)
  assert caught.value.setting == 'directory'
  assert str(directory / name) in str(caught.value)
  assert [path.name for path in directory.iterdir()] == [name]


@pytest.mark.parametrize('kind', ['FIFO', 'symbolic link'])
@pytest.mark.parametrize(
  'name',
  [
    'logs/actors.csv', 'logs/nodes/actor/0.log', 'checkpoints/.replay', '.lock',
  ],
)  # fmt: skip
def test_a_link_or_fifo_of_a_run_is_refused(tmp_path, name, kind):
  (tmp_path / 'outside').write_text('mine')
  path = tmp_path / 'run' / name
  path.parent.mkdir(parents=True)
  if kind == 'FIFO':
    os.mkfifo(path)
  else:
    path.symlink_to(tmp_path / 'outside')
  before = sorted((tmp_path / 'run').rglob('*'))
  with pytest.raises(SettingError, match=rf'{name} must be a .* a {kind}\. Re'):
    _run(tmp_path)
  assert sorted((tmp_path / 'run').rglob('*')) == before
  assert (tmp_path / 'outside').read_text() == 'mine'


def test_linked_folders_of_a_run_are_refused(tmp_path):
  target = tmp_path / 'elsewhere'
  target.mkdir()
  (tmp_path / 'run').mkdir()
  (tmp_path / 'run' / 'checkpoints').symlink_to(target)
  with pytest.raises(SettingError, match='folder and is a symbolic link'):
    _run(tmp_path)
  with pytest.raises(SettingError, match='folder and is a symbolic link'):
    launch.load_policy(str(tmp_path / 'run'))
  assert not list(target.iterdir())


def test_a_link_to_a_run_and_links_of_others_in_it_do_not_matter(tmp_path):
  (tmp_path / 'there' / 'logs' / 'wandb').mkdir(parents=True)
  (tmp_path / 'there' / 'logs' / 'wandb' / 'latest-run').symlink_to('a')
  (tmp_path / 'there' / 'notes').symlink_to('a')
  (tmp_path / 'run').symlink_to(tmp_path / 'there')
  directories.check_run(str(tmp_path / 'run'))


@pytest.mark.chaos
@pytest.mark.parametrize(
  ('topology', 'name'),
  [('single', 'logs/learner.csv'), ('distributed', 'logs')],
)
def test_run_goes_on_when_logs_are_removed(tmp_path, topology, name):
  path = tmp_path / 'run' / name

  def remove():
    if path.is_dir():
      shutil.rmtree(path)
    else:
      path.unlink(missing_ok=True)

  result = _run(tmp_path, topology, remove)
  assert result.status.steps == 600
  rows = log_files.rows(tmp_path / 'run', 'learner')
  # What was written before is gone; on a fast machine that is nothing.
  assert 0 < log_files.total(rows) <= result.status.learner_steps
  (checkpoint,) = (tmp_path / 'run' / 'checkpoints').glob('0*')
  state = json.loads((checkpoint / 'state.json').read_text())
  assert state['counts']['steps'] == 600


def test_garbled_log_is_set_aside(tmp_path, caplog):
  _run(tmp_path)
  logs = tmp_path / 'run' / 'logs'
  (logs / 'learner.csv').write_bytes(b'steps,loss\n\x80\n')
  (logs / 'actors.jsonl').unlink()
  (logs / 'actors.jsonl').mkdir()
  result = _run(tmp_path, max_steps=700)
  assert result.status.steps == 700
  (aside,) = logs.glob('learner.csv.*')
  assert aside.read_bytes() == b'steps,loss\n\x80\n'
  assert str(aside) in caplog.text
  assert all(
    row['steps'] > 600 for row in log_files.rows(logs.parent, 'learner')
  )
  (aside,) = logs.glob('actors.jsonl.*')
  assert aside.is_dir()
  assert (logs / 'actors.jsonl').is_file()


@pytest.mark.chaos
def test_what_is_in_the_way_of_what_nodes_print_is_set_aside(tmp_path):
  logs = tmp_path / 'run' / 'logs'
  (logs / 'native.log').mkdir(parents=True)
  (logs / 'nodes').write_text('mine')
  (logs / 'tensorboard').write_text('mine, too')
  result = _run(tmp_path, 'distributed')
  assert result.status.steps == 600
  for name in ('native.log', 'nodes', 'tensorboard'):
    (aside,) = logs.glob(f'{name}.2*')
    assert str(aside) in result.status.message
  assert (logs / 'native.log').is_file()
  assert not (logs / 'nodes').exists()  # Only processes have files there.
  assert list((logs / 'tensorboard').iterdir())


def test_logs_that_cannot_be_written_are_a_warning(tmp_path, caplog):
  with real_disk_errors.file_size_limit(300):
    result = _run(tmp_path)
  assert result.status.steps == 600
  for name in ('nodes.jsonl', 'learner.csv'):
    assert f'{name} cannot be written: OSError: [Errno 27]' in caplog.text
  # The last to warn is a log or the checkpoint, which is too large, too.
  assert re.search(
    '(cannot be|checkpoint not) written: OSError', result.status.message
  )
