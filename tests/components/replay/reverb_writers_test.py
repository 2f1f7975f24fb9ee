"""Tests of writers to a replay server: order of items, and waits."""

import numpy as np
import pytest
import tensorflow as tf
import tree

from repertory.components import adders
from repertory.components.replay import packing
from support.replay import (
  recording_writer,
  replay_fixture,
  transition_twin,
)
from support.system import rare_cases


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


@pytest.mark.parametrize('max_pending_items', rare_cases.daily([0, 20], [20]))
def test_transitions_are_as_in_memory(max_pending_items, monkeypatch):
  """Even if they share leaves, and slots end at very different times."""
  # Observations, forces and extras are large.
  monkeypatch.setattr(packing, '_MAX_PACKED_BYTES', 4)
  transitions = adders.Transitions(
    5, 0.9, extras_spec=transition_twin.EXTRAS_SPEC
  )
  signature = transitions.signature(transition_twin.SPEC)
  lengths = [1, 2, 5, 6, 41, 1000]

  def play(writer):
    slots = [
      transition_twin.Slot(i, [(np.ones(n), np.ones(n))] * (600 // n + 1))
      for i, n in enumerate(lengths)
    ]
    adder = transitions.make_adder(writer, len(slots))
    transition_twin.run(adder, slots, 600)
    adder.close()

  with replay_fixture.serve(replay_fixture.make_fifo(signature)) as connection:
    writer = replay_fixture.make_writer(
      connection, max_pending_items=max_pending_items
    )
    play(writer)
    items = [item.data for item in replay_fixture.drain(connection)]
  recording = recording_writer.RecordingWriter(signature, writer.shared)
  assert len(recording.shared) == 6
  play(recording)
  assert len(items) > 2000
  for found, expected in zip(items, recording.items, strict=True):
    tree.map_structure(np.testing.assert_array_equal, found, expected)
