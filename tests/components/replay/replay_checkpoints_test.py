"""Tests of the contents of a replay server's checkpoints."""

import os
import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import replay
from repertory.components.checkpoints import checkpointing
from support.replay import replay_fixture
from support.system import real_disk_errors

reverb = pytest.importorskip('reverb')
client_lib = pytest.importorskip('repertory.components.replay.reverb.client')

# Incompressible items, so that file sizes are predictable.
SIZE = 5_000
TABLE = replay.uniform(
  {'x': tf.TensorSpec((SIZE,), tf.uint8)}, 100_000, replay_fixture.NO_LIMIT
)


class Served:
  """A server with checkpoints, and a writer of items."""

  def __init__(self, directory):
    self.directory = str(directory)
    self.server = replay.make_server(
      [TABLE], checkpoint_directory=self.directory
    )
    self.connection = replay.Connection(f'localhost:{self.server.port}')
    self.random = np.random.default_rng(0)
    self.num_items = 0

  def insert(self, num_items):
    """Inserts items one by one, waiting for each."""
    with self.connection.client.trajectory_writer(1) as writer:
      for _ in range(num_items):
        writer.append([self.random.integers(0, 256, SIZE, dtype=np.uint8)])
        writer.create_item(TABLE.name, 1.0, [writer.history[0][-1]])
        writer.flush()
        self.num_items += 1

  def status(self):
    return replay_fixture.table_status(self.connection, TABLE.name)

  def restored_size(self):
    """Returns the number of items in a server that restores the checkpoint."""
    server = replay.make_server([TABLE], checkpoint_directory=self.directory)
    client = reverb.Client(f'localhost:{server.port}')
    size = replay.table_status(client)[TABLE.name].size
    server.stop()
    return size


@pytest.fixture(name='served')
def _served(tmp_path):
  served = Served(tmp_path / 'replay')
  yield served
  served.server.stop()


def test_damages_are_named(served):
  served.insert(5)
  path = replay.write_checkpoint(served.connection)
  with open(os.path.join(path, 'items.tfrecord'), 'r+b') as file:
    file.write(b'?' * 20)
  message = f'{served.directory} of a checkpoint cannot be read: '
  with pytest.raises(checkpointing.CheckpointError, match=message):
    replay.make_server([TABLE], checkpoint_directory=served.directory)


def test_later_inserts_are_not_in_the_snapshot(served):
  """So the learner need not wait for the end of the write."""
  served.insert(2_000)
  stop = threading.Event()

  def insert_more():
    while not stop.is_set():
      served.insert(5)

  inserting = threading.Thread(target=insert_more)
  inserting.start()
  before = served.status().inserts
  writing = replay_fixture.Call(replay.write_checkpoint, served.connection)
  try:
    replay_fixture.wait_until(
      lambda: replay.is_snapshot_taken(served.directory), 'the snapshot'
    )
    settled = served.status().inserts
    assert writing.is_waiting(0)
    path = str(writing.result(60))
    assert served.status().inserts > settled  # More were inserted.
  finally:
    stop.set()
    inserting.join()
  assert os.listdir(served.directory) == [os.path.basename(path)]
  assert before <= served.restored_size() <= settled


def test_a_file_that_is_cut_off_is_no_checkpoint(served):
  """Reverb reports success if only the last bytes find no room."""
  served.insert(20)
  path = replay.write_checkpoint(served.connection)
  size = os.path.getsize(os.path.join(path, 'chunks.tfrecord'))
  outcomes = set()
  # The size differs a little each time.
  for missing in (*range(0, 400, 40), size // 2, size):
    replay.remove_checkpoints(served.directory)
    try:
      with real_disk_errors.file_size_limit(size - missing):
        replay.write_checkpoint(served.connection)
    except replay.ReplayCheckpointError as error:
      outcomes.add('here' if 'its end is missing' in str(error) else 'Reverb')
    else:
      assert served.restored_size() == 20
  assert outcomes == {'here', 'Reverb'}  # The detecting side.
  # The server is still healthy.
  assert served.status().size == 20
  served.insert(1)
  replay.remove_checkpoints(served.directory)
  replay.write_checkpoint(served.connection)
  assert served.restored_size() == 21


def test_a_file_with_damage_in_the_middle_is_no_checkpoint(served):
  served.insert(20)
  client: Any = served.connection.client
  write = client.checkpoint

  def write_and_damage():
    path = write()
    with open(os.path.join(path, 'chunks.tfrecord'), 'r+b') as file:
      file.seek(os.path.getsize(file.name) // 2)
      file.write(bytes(100))
    return path

  client.checkpoint = write_and_damage
  with pytest.raises(
    replay.ReplayCheckpointError, match=r'chunks.tfrecord, but .* damaged'
  ):
    replay.write_checkpoint(served.connection)


def test_server_that_is_gone_is_another_error(tmp_path, monkeypatch):
  monkeypatch.setattr(client_lib, 'STATUS_TIMEOUT_SECONDS', 2)
  served = Served(tmp_path)
  served.server.stop()
  call = replay_fixture.Call(replay.write_checkpoint, served.connection)
  with pytest.raises((ConnectionError, TimeoutError)):
    call.result(20)
