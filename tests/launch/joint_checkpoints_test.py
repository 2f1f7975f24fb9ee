"""Tests of joint checkpoints of several learners."""

import errno
import json
import os
import zipfile
from unittest import mock

import numpy as np
import pytest

from repertory.components.checkpoints import checkpointing
from repertory.launch.nodes import joint_checkpoints

_NAMES = ['actor_learner/0', 'actor_learner/1']


def _make(tmp_path):
  directory = tmp_path / '.replay'
  directory.mkdir(exist_ok=True)
  return joint_checkpoints.LearnerDeposits(str(directory), _NAMES)


def _send(deposits, tmp_path, index, learner_steps=0):
  """Sends a checkpoint whose only array has the learner's step."""
  path = checkpointing.Checkpointer(str(tmp_path / 'own')).save(
    {'x': np.asarray(float(learner_steps))},
    {'counts': {'learner_steps': learner_steps}},
  )

  def receive(*chunk):
    deposits.receive(_NAMES[index], *chunk)
    return True

  joint_checkpoints.send(path, str(tmp_path / 'archive'), receive)


def test_waits_for_new_archives_of_all(tmp_path):
  deposits = _make(tmp_path)
  _send(deposits, tmp_path, 0, 3)
  assert not deposits.prepare() and not deposits.is_complete
  _send(deposits, tmp_path, 1, 5)
  assert deposits.prepare() and deposits.is_complete
  deposits.flush()
  assert [float(state['x']) for state in deposits.saved()] == [3, 5]
  folder = deposits.take_snapshot()()
  for index, steps in enumerate((3, 5)):
    with zipfile.ZipFile(f'{folder}/learner_{index}.zip') as archive:
      state = json.loads(archive.read('state.json'))
    assert state['counts']['learner_steps'] == steps
  # What is newer does not change what was taken.
  assert not deposits.prepare()
  _send(deposits, tmp_path, 0, 7)
  assert [float(state['x']) for state in deposits.saved()] == [3, 5]


def _restore(tmp_path, num_learners=2):
  """Writes the files of a checkpoint, with the index of each learner."""
  folder = tmp_path / '.replay' / '0-restored'
  folder.mkdir(parents=True)
  for index in range(num_learners):
    path = checkpointing.Checkpointer(str(tmp_path / 'before')).save(
      {'x': np.asarray(float(index))}, {'counts': {'learner_steps': index}}
    )
    joint_checkpoints.pack(path, str(folder / f'learner_{index}.zip'))
  return folder


def test_restored_files_are_kept_until_newer_ones_come(tmp_path):
  folder = _restore(tmp_path)
  deposits = _make(tmp_path)
  _send(deposits, tmp_path, 0, 9)
  assert deposits.is_complete and not deposits.prepare()
  deposits.flush()
  assert [float(state['x']) for state in deposits.saved()] == [9, 1]
  assert not list(folder.iterdir())
  deposits.close()
  assert not (tmp_path / '.replay').exists()


def test_those_of_another_number_of_learners_are_removed(tmp_path):
  folder = _restore(tmp_path, 3)
  deposits = _make(tmp_path)
  assert deposits.kept_of(_NAMES[0]) is None
  assert not list(folder.iterdir())


class TestSending:
  @pytest.fixture(autouse=True)
  def _set_up(self, tmp_path):
    self.folder = tmp_path / 'written'
    self.folder.mkdir()
    (self.folder / 'state.json').write_text('{}')
    yield
    assert os.listdir(tmp_path) == ['written']

  def send(self, deposit):
    archive = str(self.folder.parent / 'archive')
    joint_checkpoints.send(str(self.folder), archive, deposit)

  def test_full_disk(self, monkeypatch):
    def refuse(folder, path):
      del folder
      with open(path, 'wb') as file:
        file.write(b'half')
      raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(joint_checkpoints, 'pack', refuse)
    with pytest.raises(OSError, match='No space left'):
      self.send(None)

  def test_stops_if_the_receiver_has_no_room(self, monkeypatch):
    monkeypatch.setattr(joint_checkpoints, '_CHUNK_BYTES', 10)
    deposit = mock.Mock(return_value=False)
    self.send(deposit)
    (((offset, _, is_last), _),) = deposit.call_args_list
    assert (offset, is_last) == (0, False)
