"""Tests of joint checkpoints of several learners."""

import json
import zipfile

import numpy as np

from repertory.components.checkpoints import checkpointing
from repertory.launch.nodes import checkpoint_transfer, gossip_deposits

_NAMES = ['actor_learner/0', 'actor_learner/1']


def _make(tmp_path):
  directory = tmp_path / '.replay'
  directory.mkdir(exist_ok=True)
  return gossip_deposits.LearnerDeposits(str(directory), _NAMES)


def _send(deposits, tmp_path, index, learner_steps=0):
  """Sends a checkpoint whose only array has the learner's step."""
  path = checkpointing.Checkpointer(str(tmp_path / 'own')).save(
    {'x': np.asarray(float(learner_steps))},
    {'counts': {'learner_steps': learner_steps}},
  )
  archive = str(tmp_path / 'archive')
  checkpoint_transfer.pack(path, archive)
  for chunk in checkpoint_transfer.read_chunks(archive):
    deposits.receive(_NAMES[index], *chunk)


def test_waits_for_new_archives_of_all(tmp_path):
  deposits = _make(tmp_path)
  _send(deposits, tmp_path, 0, 3)
  assert not deposits.prepare() and not deposits.is_complete
  _send(deposits, tmp_path, 1, 5)
  assert deposits.prepare() and deposits.is_complete
  deposits.flush()
  assert [float(state['x']) for state in deposits.saved()] == [3, 5]
  deposits.remove_snapshots()
  folder = deposits.write_snapshot()
  for index, steps in enumerate((3, 5)):
    with zipfile.ZipFile(f'{folder}/learner_{index}.zip') as archive:
      state = json.loads(archive.read('state.json'))
    assert state['counts']['learner_steps'] == steps
  # What is newer does not change what was taken.
  assert not deposits.prepare()
  _send(deposits, tmp_path, 0, 7)
  assert [float(state['x']) for state in deposits.saved()] == [3, 5]


def test_restarted_learner_is_not_waited_for(tmp_path):
  deposits = _make(tmp_path)
  deposits.restart(_NAMES[0])
  assert not deposits.prepare()
  for index in range(2):
    _send(deposits, tmp_path, index, 4)
  deposits.flush()
  _send(deposits, tmp_path, 0, 9)
  deposits.restart(_NAMES[1])
  assert deposits.prepare()
  deposits.flush()
  assert [float(state['x']) for state in deposits.saved()] == [9, 4]


def _restore(tmp_path, num_learners=2):
  """Writes the files of a checkpoint, with the index of each learner."""
  folder = tmp_path / '.replay' / '0-restored'
  folder.mkdir(parents=True)
  for index in range(num_learners):
    path = checkpointing.Checkpointer(str(tmp_path / 'before')).save(
      {'x': np.asarray(float(index))}, {'counts': {'learner_steps': index}}
    )
    checkpoint_transfer.pack(path, str(folder / f'learner_{index}.zip'))
  return folder


def test_restored_files_are_removed_when_not_needed(tmp_path):
  folder = _restore(tmp_path)
  deposits = _make(tmp_path)
  _send(deposits, tmp_path, 0, 9)
  deposits.restart(_NAMES[1])  # It begins again from what was restored.
  assert deposits.prepare()
  deposits.flush()
  assert [path.name for path in folder.iterdir()] == ['learner_1.zip']
  assert [float(state['x']) for state in deposits.saved()] == [9, 1]
  for index in range(2):
    _send(deposits, tmp_path, index, 10)
  deposits.flush()
  assert not list(folder.iterdir())
  deposits.close()
  assert not (tmp_path / '.replay').exists()
