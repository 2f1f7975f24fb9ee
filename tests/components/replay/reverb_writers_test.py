"""Tests of writers to a replay server: order of items, and waits."""

import numpy as np
import pytest
import tensorflow as tf

from support.replay import (
  replay_fixture,
)


@pytest.fixture(autouse=True)
def _no_threads_left():
  with replay_fixture.no_threads_left():
    yield


def _open(connection, num_alive=1, **settings):
  writer = replay_fixture.make_writer(connection, **settings)
  writer.open(num_alive)
  return writer


# All leaves are packed, or 'image' is by itself.
_SIGNATURE = {
  'image': tf.TensorSpec([2000], tf.uint8),
  'number': tf.TensorSpec([], tf.int64),
}


def _image(number):
  return np.full([2000], number % 256, np.uint8)


def test_a_reset_drops_kept_arrays():
  with replay_fixture.serve(replay_fixture.make_fifo(_SIGNATURE)) as connection:
    writer = _open(connection, num_alive=9)
    kept = writer.keep([_image(1)])
    writer.reset()
    writer.keep([_image(2)])
    with pytest.raises(ValueError, match='expired'):
      writer.put([None, np.array([1])], [kept])
    writer.close()
    assert replay_fixture.table_status(connection).inserts == 0
