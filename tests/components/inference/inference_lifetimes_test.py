"""Tests of connecting and disconnecting actors and inference servers."""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

from repertory.components import specs
from repertory.components.inference import (
  addresses,
  client,
  frames,
  handshakes,
)
from repertory.components.runtime import callers, signals
from support.launch import inference_fixture, raw_lane
from support.replay import replay_fixture

DEADLINE_SECONDS = inference_fixture.DEADLINE_SECONDS

_ACTOR_SOURCE = """
import sys
import time
from support.launch import raw_lane

lane = raw_lane.RawLane(sys.argv[1], [0, 1], actor='child')
lane.step(0)
lane.step(1)
if sys.argv[2] == 'torn':
  lane.stream.sendall(lane.frames[1][:70])
elif sys.argv[2] == 'unread':
  lane.send(1)
print('ready', flush=True)
time.sleep(600)
"""


class TestDeath:
  @pytest.mark.parametrize('how', ['torn', 'unread', 'idle'])
  def test_kill(self, how):
    with inference_fixture.serving() as it, contextlib.ExitStack() as stack:
      other = it.connection([2, 3, 4], actor='other')
      other.step(0)
      paths = filter(None, sys.path)
      child = stack.enter_context(
        subprocess.Popen(
          [sys.executable, '-c', _ACTOR_SOURCE, it.address, how],
          stdout=subprocess.PIPE,
          env=os.environ | {'PYTHONPATH': os.pathsep.join(paths)},
          text=True,
        )
      )
      stack.callback(child.kill)
      line = replay_fixture.Call(child.stdout.readline).result(60)
      assert line == 'ready\n'
      adder = it.adder('child')
      replay_fixture.wait_until(lambda: adder.calls[1:], 'what came whole')
      other.step()
      child.send_signal(signal.SIGKILL)
      child.wait(DEADLINE_SECONDS)
      replay_fixture.wait_until(lambda: adder.is_closed, 'the adder closed')
      # START and the first step; the second if it came whole, and in time.
      assert len(adder.calls) in ((2, 3) if how == 'unread' else (2,))
      other.step()
      connection = it.connection([0, 1], actor='another')
      connection.step(0)
      connection.step()
      other.finish()

  def test_gone_during_the_handshake(self):
    with inference_fixture.serving() as it:
      other = it.connection([0, 1], actor='other')
      hello = frames.pack_json(frames.HELLO, raw_lane.hello([5]))
      for data in (b'', hello[:10], hello[:50]):
        it.speak(data).close()
        other.step(0)
        other.step()
      it.connection([5]).step(0)

  @pytest.mark.parametrize('address', [None, 'tcp:127.0.0.1:0'])
  def test_gone_before_the_welcome(self, address):
    has_gone = threading.Event()

    def wait(adder):  # The server has read the handshake, and answers next.
      if adder.actor == 'gone':
        assert has_gone.wait(DEADLINE_SECONDS)

    with inference_fixture.serving(address=address, configure=wait) as it:
      other = it.connection([0, 1], actor='other')
      hello = raw_lane.hello([5], actor='gone')
      stream = it.speak(frames.pack_json(frames.HELLO, hello))
      # A reset, which TCP does not otherwise distinguish from an end.
      linger = struct.pack('ii', 1, 0)
      stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
      stream.close()
      has_gone.set()
      other.step(0)
      other.step()
      replay_fixture.wait_until(
        lambda: it.server.report()['actors'] == 1, 'the end of the other'
      )
      it.connection([5]).step(0)

  def test_gone_while_waiting(self):
    with inference_fixture.serving(window_seconds=DEADLINE_SECONDS) as it:
      gone, one, two = (
        it.connection([0, 5, 6]),
        it.connection([1, 2]),
        it.connection([3, 4]),
      )
      gone.send(0)  # The server waits for four of seven rows.
      gone.close()
      rows = []
      replay_fixture.wait_until(
        lambda: rows.append(it.server.report()) or rows[-1]['actors'] == 2,
        'the end of the lane',
      )
      two.step(0)  # Two of four rows are enough.
      one.step(0)
      rows.append(it.server.report())
      # Rows of dead actors are not computed.
      assert {row['rows_per_batch'] for row in rows} == {0, 2}

  def test_next_generation_takes_over(self):
    with inference_fixture.serving() as it:
      old = it.connection([0, 1], actor='a', num_frames=2)
      adder = it.adders[0]
      adder.gate.clear()
      old.step(0)
      old.step(1)  # The adder waits after this one.
      replay_fixture.wait_until(lambda: adder.num_waits, 'the wait')
      new = it.connection([1, 2], actor='a')
      assert old.stream.recv(1) == b''
      adder.gate.set()
      replay_fixture.wait_until(lambda: adder.is_closed, 'the adder closed')
      assert len(adder.calls) == 2  # Nothing was added.
      new.step(0)
      new.step()
      it.connection([0], actor='b').step(0)  # It has not been taken over.
      new.finish()
      assert len(it.adder('a').calls) == 2

  def test_replaced_generation_cannot_take_back(self):
    with inference_fixture.serving() as it:
      old = it.connection([0, 1], actor='a', num_frames=2)
      old.step(0)
      new = it.connection([0, 1], actor='a', generation=1)
      assert old.stream.recv(1) == b''
      for _ in range(2):  # Also when the other one has gone.
        with pytest.raises(frames.ProtocolError, match='a was replaced'):
          it.connection([0, 1], actor='a', generation=0)
        if new is not None:
          new.step(0)
          new.finish()
          new = None
      it.connection([0, 1], actor='a', generation=1).step(0)

  @pytest.mark.parametrize('token', ['', 'other'])
  def test_who_does_not_know_the_token_is_refused(self, token):
    with inference_fixture.serving(token='right') as it:
      with pytest.raises(
        frames.ProtocolError, match='must have the token'
      ) as caught:
        it.connection([0, 1], token=token)
      assert 'right' not in str(caught.value)
      with pytest.raises(frames.ProtocolError, match='must have the token'):
        it.connection([0, 1], token='\ud800', purpose='which is not checked')
      it.connection([0, 1], token='right').step(0)

  def test_unfinished_handshakes_end_with_the_server(self):
    with inference_fixture.serving() as it:
      stream = it.speak(b'rprt')
      it.connection([0])  # By now the first one is accepted, too.
      it.stop.set()
      it.call.result()
      registered = it.server._selector.get_map()
      assert registered is None
      assert stream.recv(1) == b''


class _Clock:
  """Stands still until `now` is set."""

  def __init__(self):
    self.now = 1000.0

  def __call__(self):
    return self.now


class TestLateHandshake:
  HELLO = frames.pack_json(frames.HELLO, raw_lane.hello([2, 3]))

  @pytest.mark.parametrize(
    ('data', 'message'),
    [
      pytest.param(b'', 'got 0 of at least 16 bytes', id='silent'),
      pytest.param(HELLO[:7], 'got 7 of at least 16 bytes', id='half_a_header'),
      pytest.param(HELLO[:40], f'got 40 of {len(HELLO)} bytes', id='no_rest'),
    ],
  )
  def test_is_refused(self, data, message):
    clock = _Clock()
    with inference_fixture.serving(clock=clock) as it:
      late = it.speak(data)
      other = it.connection([0])  # By now the first one is accepted, too.
      other.step(0)
      clock.now += handshakes.TIMEOUT_SECONDS
      other.step()
      assert not select.select([late], [], [], 0)[0]  # Not yet.
      early = it.speak(self.HELLO[:20])
      it.connection([1])
      clock.now += 0.1
      reason = raw_lane.read_reason(late)
      assert 'Waited 30 seconds for the handshake with which' in reason
      assert message in reason
      assert late.recv(1) == b''
      # Lanes continue, and later connections still have time.
      other.step()
      early.sendall(self.HELLO[20:])
      kind, _ = raw_lane.read_frame(early)
      assert kind == frames.WELCOME
      assert it.server.report()['actors'] == 3
      other.finish()

  def test_one_that_came_while_others_were_served_is_in_time(self):
    clock = _Clock()
    slow = []

    def be_slow(adder):
      put = adder.put

      def put_slowly(*step):
        # The server's loop, which has already checked for input.
        clock.now += handshakes.TIMEOUT_SECONDS + 1
        slow[0].sendall(self.HELLO[20:])
        put(*step)

      adder.put = put_slowly

    with inference_fixture.serving(clock=clock, configure=be_slow) as it:
      slow.append(it.speak(self.HELLO[:20]))
      connection = it.connection([0])
      connection.step(0)
      # Timesteps without an answer are added immediately.
      last = raw_lane.timestep_frame(np.zeros([1, 2]), raw_lane.LAST)
      connection.stream.sendall(last)
      kind, _ = raw_lane.read_frame(slow[0])
      assert kind == frames.WELCOME


class TestServerGone:
  @pytest.mark.parametrize('address', [None, 'tcp:127.0.0.1:0'])
  def test_server_ends(self, address):
    with inference_fixture.serving(
      address=address, window_seconds=DEADLINE_SECONDS
    ) as it:
      it.connection([1, 2, 3])
      thin = it.client([0])
      thin.send(inference_fixture.restart([[1, 2]]), start=True)
      waiting = replay_fixture.Call(thin.receive)
      assert waiting.is_waiting(0.1)
      it.stop.set()
      with pytest.raises(ConnectionError, match=it.address):
        waiting.result()
      with pytest.raises(ConnectionError, match=it.address):
        thin.finish()
      with pytest.raises(ConnectionError, match=it.address):
        it.client([0])

  def test_missing_server(self):
    with pytest.raises(ConnectionError, match='server answers at unix:no'):
      client.InferenceClient(
        'unix:no', raw_lane.SPEC, [0], caller=callers.Caller('a')
      )

  def test_restart(self):
    with inference_fixture.serving() as it:
      address = it.address
      connection = it.connection([0, 1], actor='a')
      connection.step(0)
      connection.step()
    with inference_fixture.serving(address=address) as it:
      with pytest.raises(OSError):
        connection.step()
      connection = it.connection([0, 1], actor='a')
      connection.step(0)
      connection.finish()

  def test_silent_server(self):
    listener, address = addresses.listen(addresses.make_address())
    with (
      listener,
      pytest.raises(
        TimeoutError,
        match=f'Waited 0.3 seconds for a welcome on .* at {address}',
      ),
    ):
      client.InferenceClient(
        address,
        raw_lane.SPEC,
        [0],
        caller=callers.Caller('a'),
        timeout_seconds=0.3,
      )

  def test_no_actions_in_time(self):
    with inference_fixture.serving(window_seconds=DEADLINE_SECONDS) as it:
      it.connection([1, 2])
      thin = it.client([0], timeout_seconds=0.3)
      thin.send(inference_fixture.restart([[1, 2]]), start=True)
      with pytest.raises(
        TimeoutError,
        match=f'Waited 0.3 seconds for actions on .* at {it.address}',
      ):
        thin.receive()

  def test_server_that_takes_nothing(self):
    spec = raw_lane.SPEC._replace(
      observations=specs.Array((4 << 20,), np.float32)
    )
    listener, address = addresses.listen(addresses.make_address())
    with listener, contextlib.ExitStack() as stack:

      def welcome():
        listener.setblocking(True)
        stream = stack.enter_context(listener.accept()[0])
        raw_lane.read_frame(stream)
        stream.sendall(frames.header(frames.WELCOME, 0))

      call = replay_fixture.Call(welcome)
      thin = client.InferenceClient(
        address, spec, [0], caller=callers.Caller('a'), timeout_seconds=0.5
      )
      stack.callback(thin.close)
      call.result()
      with pytest.raises(TimeoutError, match=f'to take timesteps.*{address}'):
        thin.send(
          inference_fixture.restart(np.zeros([1, 4 << 20], np.float32)),
          start=True,
        )

  def test_stop_ends_waits(self):
    listener, address = addresses.listen(addresses.make_address())
    with listener:
      stop = signals.StopSignal()
      call = replay_fixture.Call(
        client.InferenceClient,
        address,
        raw_lane.SPEC,
        [0],
        caller=callers.Caller('a'),
        stop=stop,
      )
      assert call.is_waiting(0.1)
      stop.set()
      with pytest.raises(signals.Stopped):
        call.result()

  def test_stop_ends_the_wait_for_actions(self):
    with inference_fixture.serving(window_seconds=DEADLINE_SECONDS) as it:
      it.connection([1, 2])
      stop = signals.StopSignal()
      thin = it.client([0], stop=stop)
      thin.send(inference_fixture.restart([[1, 2]]), start=True)
      call = replay_fixture.Call(thin.receive)
      assert call.is_waiting(0.1)
      stop.set()
      with pytest.raises(signals.Stopped):
        call.result()
