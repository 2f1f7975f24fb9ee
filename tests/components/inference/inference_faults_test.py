"""Tests of faults between inference servers and their actors."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf

from repertory.components.inference import protocol
from repertory.components.network import frames
from support.launch import inference_fixture, raw_lane
from support.replay import replay_fixture

DEADLINE_SECONDS = inference_fixture.DEADLINE_SECONDS

_INT = np.dtype(np.int32)


class TestRefusal:
  def check(self, cases, before=()):
    """Tries all cases while another lane continues.

    Args:
      cases: Bytes and a pattern for the reason.
      before: Frames of a lane to send before the bytes; None for a connection
        without a handshake.
    """
    with inference_fixture.serving() as it:
      other = it.connection([0, 1], actor='other')
      other.step(0)
      for data, message in cases:
        if before is None:
          stream = it.speak(data)
        else:
          connection = it.connection([2, 3], actor='wrong')
          for now in before:
            connection.step(now)
          stream = connection.stream
          stream.sendall(data)
        assert re.search(message, raw_lane.read_reason(stream))
        stream.close()
        other.step()
        assert it.server.report()['actors'] == 1, message
      connection = it.connection([2, 3])  # They are free.
      connection.step(0)
      connection.finish()
      other.finish()

  def test_hello(self):
    other_specs = {
      'timestep': frames.describe([((), _INT), ((3,), _INT)]),
      'action': frames.describe([((), _INT)]),
    }
    changes = [
      ({'protocol': 1}, r'protocol must be 3, got 1\.'),
      ({'generation': 'old'}, 'A handshake must name actor and environments'),
      ({'generation': math.inf}, 'A handshake must name actor and env'),
      ({'timestep': other_specs['timestep']}, r'timestep must .*\[3\], "<i4"'),
      ({'timestep': None}, 'timestep must have the leaves .*got null'),
      ({'action': other_specs['action']}, r'action must .*got \[\[\[\], "<i4"'),
      ({'environment_ids': [2, 3, 4, 5, 6]}, 'must be up to 4 distinct'),
      ({'environment_ids': []}, r'must be up to 4 distinct .*got \[\]'),
      ({'environment_ids': [2, 16]}, r'in \[0, 16\), got \[2, 16\]\.'),
      ({'environment_ids': None}, 'A handshake must name actor and env'),
      # Another actor has them.
      ({'environment_ids': [2, 1]}, r"free; 'other' has some of \[2, 1\]\."),
    ]
    self.check(
      [
        (frames.pack_json(frames.HELLO, raw_lane.hello([2, 3], **c)), message)
        for c, message in changes
      ],
      before=None,
    )

  def test_what_is_no_handshake(self):
    def with_header(payload, kind=frames.HELLO):
      return frames.header(kind, len(payload)) + payload

    self.check(
      [
        (b'GET / HTTP/1.1\r\nHost: here\r\n\r\n', "must begin with b'rprt'"),
        (with_header(b'', protocol.STEP), 'begin with a handshake.*kind 3'),
        (frames.header(frames.HELLO, 2**32 - 1), 'at most 262144 bytes'),
        (with_header(b'{'), 'must be JSON'),
        (with_header(b'[' * 100_000), 'must be JSON'),
      ],
      before=None,
    )

  def test_frames(self):
    def timesteps(step_types, kind=protocol.STEP):
      return raw_lane.timestep_frame(np.zeros([2, 2]), step_types, kind)

    size = len(timesteps(0)) - frames.HEADER_SIZE
    self.check(
      [
        (b'\0' * 16, "must begin with b'rprt'"),
        (frames.header(77, 0), "'wrong' sent a frame of kind 77 with 0 bytes"),
        (
          frames.header(protocol.STEP, size + 64),
          f'with {size + 64} bytes; for 2 environments timesteps have {size}',
        ),
        (frames.header(protocol.BYE, 1), 'with 1 bytes'),
        # If it is too large, the header is sufficient.
        (frames.header(protocol.STEP, size * 99) + bytes(size * 99), 'bytes'),
      ],
      before=(0, 1),
    )

  def test_client_says_why_and_where(self):
    with inference_fixture.serving() as it:
      it.connection([0, 1], actor='other')
      with pytest.raises(
        frames.ProtocolError,
        match=f"at {it.address} refuses: environment_ids must be free; 'other' "
        'has',
      ):
        it.client([1, 2])


class TestAdder:
  def test_one_that_waits_holds_back_its_lane(self):
    with inference_fixture.serving() as it:
      connection = it.connection([0, 1], num_frames=9, actor='held')
      other = it.connection([2, 3, 4])
      adder = it.adders[0]
      adder.gate.clear()
      connection.step(0)
      connection.step(1)  # It is answered before the adder is called.
      connection.send(2)
      other.step(0)
      it.adders[1].is_ahead = lambda: False
      for _ in range(50):
        other.step()
      connection.stream.setblocking(False)
      with pytest.raises(BlockingIOError):
        connection.stream.recv(1)
      assert len(adder.calls) == 2
      connection.stream.settimeout(DEADLINE_SECONDS)
      adder.gate.set()
      connection.receive()
      for now in range(3, 9):
        connection.step(now)
      connection.finish()
      other.finish()
      assert len(adder.calls) == 9
      for now, call in enumerate(adder.calls):
        np.testing.assert_array_equal(
          call[1].observation, connection.observations[now]
        )
        np.testing.assert_array_equal(
          call[1].step_type, connection.step_types[now]
        )

  @pytest.mark.parametrize('when', ['add_first', 'close'])
  def test_one_that_raises_ends_the_server(self, when):
    with replay_fixture.no_threads_left():
      it = inference_fixture.Serving()
      connection, other = (
        it.connection([0, 1]),
        it.connection([2], actor='other'),
      )
      it.adders[0].error = (
        OSError('table is full') if when == 'add_first' else None
      )
      connection.step(0)
      if when != 'add_first':
        connection.step()
        replay_fixture.wait_until(lambda: it.adders[0].calls[1:], 'a step')
        it.adders[0].error = OSError('table is full')
        connection.close()
      with pytest.raises(OSError, match='table is full'):
        it.call.result()
      assert it.stop.is_set()
      assert other.stream.recv(1) == b''
      with pytest.raises(OSError, match='table is full'):
        it.close()

  def test_finish_waits_until_it_is_closed(self):
    with inference_fixture.serving() as it:
      thin, other = it.client([0, 1]), it.connection([2])
      thin.send(inference_fixture.restart([[1, 2], [3, 4]]), start=True)
      thin.receive()
      adder = it.adders[0]
      replay_fixture.wait_until(lambda: adder.calls, 'the start')
      adder.gate.clear()
      call = replay_fixture.Call(thin.finish)
      assert call.is_waiting(0.3)
      other.step(0)
      assert not adder.is_closed
      adder.gate.set()
      call.result()
      assert adder.is_closed
      it.connection([1], actor='another').step(0)  # It is free.


class TestPolicy:
  @pytest.mark.parametrize('buckets', [(1, 2), (4,)])
  def test_what_raises_for_a_lane_fails_it_alone(self, buckets):
    class Checking(inference_fixture.EchoPolicy):
      def step(self, observation, state):
        tf.debugging.assert_non_negative(observation, 'observe!')
        return super().step(observation, state)

    with inference_fixture.serving(
      Checking(), buckets=buckets, window_seconds=DEADLINE_SECONDS
    ) as it:
      connections = [
        it.connection([i]) for i in range(4)
      ]  # The server waits for two.
      for now in (0, 1, 1):
        for connection in connections:
          connection.send(now)
        for connection in connections:
          connection.receive()
      bad, *good = connections
      good[0].send(1)  # Alone it leaves the bad row as padding.
      bad.stream.sendall(raw_lane.timestep_frame(np.full([1, 2], -1), 1))
      assert re.search('observe!', raw_lane.read_reason(bad.stream))
      good[0].receive()
      for connection in good[1:]:
        connection.send(1)
      for connection in good[1:]:
        connection.receive()
