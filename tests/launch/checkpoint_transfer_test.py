"""Tests of checkpoint uploads to a full disk."""

import errno
import os
import types
from typing import Any

from repertory.launch.nodes import checkpoint_transfer


class _Writer:
  """Writer with a complete checkpoint."""

  def __init__(self, path):
    self.path, self.reported = path, []

  def write(self):
    return self.path

  def fail(self, error):
    self.reported.append(error)


class _Gossip:
  """Gossip node that stores uploads, or has no room for them."""

  def __init__(self, has_room=True):
    self.has_room, self.deposits = has_room, []

  def deposit(self, caller, offset, data, is_last):
    del caller, data
    self.deposits.append((offset, is_last))
    return self.has_room


def _make(tmp_path, writer, gossip):
  session: Any = types.SimpleNamespace(
    checkpoint_directory=str(tmp_path),
    experiment=types.SimpleNamespace(
      directory=str(tmp_path), timeout_seconds=30.0
    ),
  )
  return checkpoint_transfer.CheckpointUpload(
    session, writer, gossip, ('a', 0, 'token')
  )


def _write(tmp_path):
  folder = tmp_path / 'written'
  folder.mkdir()
  (folder / 'state.json').write_text('{}')
  return str(folder)


def _refuse(folder, path):
  del folder
  with open(path, 'wb') as file:
    file.write(b'half')
  raise OSError(errno.ENOSPC, 'No space left on device')


def test_full_disk_is_a_warning(tmp_path, monkeypatch):
  monkeypatch.setattr(checkpoint_transfer, 'pack', _refuse)
  writer, gossip = _Writer(_write(tmp_path)), _Gossip()
  _make(tmp_path, writer, gossip).finish()
  assert [error.errno for error in writer.reported] == [errno.ENOSPC]
  assert not gossip.deposits
  assert os.listdir(tmp_path) == ['written']


def test_upload_stops_if_the_receiver_has_no_room(tmp_path, monkeypatch):
  monkeypatch.setattr(checkpoint_transfer, '_CHUNK_BYTES', 10)
  gossip = _Gossip(has_room=False)
  _make(tmp_path, _Writer(_write(tmp_path)), gossip).finish()
  assert gossip.deposits == [(0, False)]
  assert os.listdir(tmp_path) == ['written']
