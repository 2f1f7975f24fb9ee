"""Tests of joint checkpoints of several learners."""

import json
import zipfile

import numpy as np
import pytest

from repertory.components.checkpoints import checkpointing
from repertory.launch.nodes import (
  checkpoint_transfer,
  gossip_deposits,
  gossip_messages,
)

_NAMES = ['actor_learner/0', 'actor_learner/1']


def _make(tmp_path, keeps_step=False, timeout_seconds=60.0):
  directory = tmp_path / '.replay'
  directory.mkdir(exist_ok=True)
  return gossip_deposits.LearnerDeposits(
    str(directory),
    _NAMES,
    keeps_step=keeps_step,
    timeout_seconds=timeout_seconds,
  )


def _order(deposits) -> tuple[int, int]:
  """Returns number and iteration of the open order."""
  number, turn = deposits.order()
  assert turn is not None
  return number, turn


def _send(deposits, tmp_path, index, label, learner_steps=0):
  """Sends a checkpoint whose only array has the learner's step."""
  counts = {'steps': 10, 'episodes': 1, 'learner_steps': learner_steps}
  path = checkpointing.Checkpointer(str(tmp_path / 'own')).save(
    {'x': np.asarray(float(learner_steps))},
    {'counts': counts, 'is_exact': True},
  )
  archive = str(tmp_path / 'archive')
  checkpoint_transfer.pack(path, archive)
  found = [
    deposits.receive(_NAMES[index], label, chunk)
    for chunk in checkpoint_transfer.read_chunks(archive)
  ]
  return found[-1]


def _label(number, iteration=0, is_last=False):
  return gossip_messages.Label(number, iteration, is_last)


def test_all_must_meet_an_order(tmp_path):
  deposits = _make(tmp_path)
  assert deposits.order() == (0, None)
  assert not deposits.prepare()
  assert deposits.order() == (1, None)
  assert _send(deposits, tmp_path, 0, _label(1), 3) is None
  assert not deposits.prepare()
  _send(deposits, tmp_path, 1, _label(1), 5)
  assert deposits.prepare()
  deposits.flush()
  assert [float(state['x']) for state in deposits.saved()] == [3, 5]
  deposits.remove_snapshots()
  folder = deposits.write_snapshot()
  assert deposits.is_snapshot_taken()
  for index, steps in enumerate((3, 5)):
    with zipfile.ZipFile(f'{folder}/learner_{index}.zip') as archive:
      state = json.loads(archive.read('state.json'))
    assert state['counts']['learner_steps'] == steps
  # What is newer does not change what was taken.
  assert not deposits.prepare()
  _send(deposits, tmp_path, 0, _label(2), 7)
  assert [float(state['x']) for state in deposits.saved()] == [3, 5]


def test_one_that_cannot_save_spoils_the_order_alone(tmp_path, monkeypatch):
  monkeypatch.setattr(gossip_deposits, '_RETRY_SECONDS', 0.0)
  deposits = _make(tmp_path)
  deposits.prepare()
  _send(deposits, tmp_path, 0, _label(1))
  deposits.fail(_NAMES[1], _label(1))
  assert not deposits.prepare()
  assert not deposits.prepare()  # The next one.
  assert deposits.order() == (2, None)
  for index in range(2):
    _send(deposits, tmp_path, index, _label(2))
  assert deposits.prepare()


def test_restarted_learner_is_not_waited_for(tmp_path):
  deposits = _make(tmp_path)
  deposits.prepare()
  for index in range(2):
    _send(deposits, tmp_path, index, _label(1), 4)
  assert deposits.prepare()
  deposits.prepare()
  _send(deposits, tmp_path, 0, _label(2), 9)
  deposits.forget(_NAMES[1])
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
  deposits.prepare()
  _send(deposits, tmp_path, 0, _label(1), 9)
  deposits.forget(_NAMES[1])  # It begins again from what was restored.
  assert deposits.prepare()
  deposits.flush()
  assert [path.name for path in folder.iterdir()] == ['learner_1.zip']
  assert [float(state['x']) for state in deposits.saved()] == [9, 1]
  deposits.prepare()
  for index in range(2):
    _send(deposits, tmp_path, index, _label(2), 10)
  assert deposits.prepare()
  deposits.flush()
  assert not list(folder.iterdir())
  deposits.close()
  assert not (tmp_path / '.replay').exists()


def test_a_wait_has_a_time_out(tmp_path):
  deposits = _make(tmp_path, timeout_seconds=0.0)
  deposits.prepare()
  _send(deposits, tmp_path, 0, _label(1))
  with pytest.raises(TimeoutError, match='a checkpoint of actor_learner/1'):
    deposits.prepare()


class TestKeepingStep:
  def test_iteration_lies_ahead_and_is_common(self, tmp_path):
    deposits = _make(tmp_path, keeps_step=True)
    deposits.record_iteration(_NAMES[0], 50, missed=0)
    deposits.prepare()
    number, turn = _order(deposits)
    assert number == 1 and turn > 50
    for index in range(2):
      _send(deposits, tmp_path, index, _label(1, turn), 6)
    assert deposits.prepare()
    deposits.flush()
    assert deposits.counts() == {
      'steps': 20, 'episodes': 2, 'learner_steps': 12,
    }  # fmt: skip
    assert deposits.describe() == {'is_exact': True}

  def test_missed_order_is_canceled_and_repeated(self, tmp_path):
    deposits = _make(tmp_path, keeps_step=True)
    deposits.prepare()
    _, turn = _order(deposits)
    _send(deposits, tmp_path, 0, _label(1, turn))
    deposits.record_iteration(_NAMES[1], turn + 1, missed=1)
    assert deposits.order() == (0, None)
    deposits.prepare()
    number, later = _order(deposits)
    assert number == 2 and later > turn + 1
    # Checkpoints for the old order are ignored.
    _send(deposits, tmp_path, 1, _label(1, turn))
    _send(deposits, tmp_path, 0, _label(2, later))
    assert not deposits.prepare()

  def test_learner_that_is_done_keeps_its_checkpoint(self, tmp_path):
    deposits = _make(tmp_path, keeps_step=True)
    assert _send(deposits, tmp_path, 0, _label(0, 30, is_last=True), 8) == 8
    deposits.record_iteration(_NAMES[1], 40, missed=0)
    deposits.prepare()
    _, turn = _order(deposits)
    _send(deposits, tmp_path, 1, _label(1, turn), 9)
    assert deposits.prepare()

  def test_final_ones_must_be_of_one_iteration(self, tmp_path):
    deposits = _make(tmp_path, keeps_step=True)
    _send(deposits, tmp_path, 0, _label(0, 30))
    assert not deposits.can_end()
    _send(deposits, tmp_path, 1, _label(0, 31))
    assert deposits.have_all_ended()
    assert not deposits.can_end()
    _send(deposits, tmp_path, 1, _label(0, 30))
    assert deposits.can_end()
