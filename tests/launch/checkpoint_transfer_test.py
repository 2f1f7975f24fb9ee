"""Tests of checkpoint uploads to a full disk."""

import errno
import os
import types
from typing import Any
from unittest import mock

import pytest

from repertory.launch.nodes import checkpoint_transfer


@pytest.fixture(name='parts')
def _parts(tmp_path):
  """Returns an upload, its writer, and its gossip node without room."""
  session: Any = types.SimpleNamespace(
    checkpoint_directory=str(tmp_path),
    experiment=types.SimpleNamespace(
      directory=str(tmp_path), timeout_seconds=30.0
    ),
  )
  (tmp_path / 'written').mkdir()
  (tmp_path / 'written' / 'state.json').write_text('{}')
  writer, gossip = mock.Mock(), mock.Mock()
  writer.write.return_value = str(tmp_path / 'written')
  gossip.deposit.return_value = False
  caller = ('a', 0, 'token')
  yield (
    checkpoint_transfer.CheckpointUpload(session, writer, gossip, caller),
    writer,
    gossip,
  )
  assert os.listdir(tmp_path) == ['written']


def test_full_disk_is_a_warning(parts, monkeypatch):
  def refuse(folder, path):
    del folder
    with open(path, 'wb') as file:
      file.write(b'half')
    raise OSError(errno.ENOSPC, 'No space left on device')

  monkeypatch.setattr(checkpoint_transfer, 'pack', refuse)
  upload, writer, gossip = parts
  upload.finish()
  (error,) = writer.fail.call_args.args
  assert error.errno == errno.ENOSPC
  gossip.deposit.assert_not_called()


def test_upload_stops_if_the_receiver_has_no_room(parts, monkeypatch):
  monkeypatch.setattr(checkpoint_transfer, '_CHUNK_BYTES', 10)
  upload, _, gossip = parts
  upload.finish()
  ((_, offset, _, is_last), _) = gossip.deposit.call_args
  assert (gossip.deposit.call_count, offset, is_last) == (1, 0, False)


def test_each_checkpoint_is_uploaded_before_the_next_begins(parts):
  upload, writer, gossip = parts
  writer.is_writing.return_value, writer.path = False, None
  upload.advance()
  writer.write_if_due.assert_called_once()
  writer.path = writer.write()
  upload.advance()
  upload._sending.result(30)
  gossip.deposit.assert_called_once()
  upload.advance()
  assert writer.write_if_due.call_count == 2
