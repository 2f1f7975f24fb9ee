"""Tests of connecting and disconnecting actors and inference servers."""

import select

import pytest

from repertory.components.inference import client
from repertory.components.network import (
  addresses,
  callers,
  frames,
  network_interfaces,
)
from repertory.components.runtime import signals
from support.launch import inference_fixture, raw_lane
from support.replay import replay_fixture

DEADLINE_SECONDS = inference_fixture.DEADLINE_SECONDS


class TestDeath:
  def test_gone_during_the_handshake(self):
    with inference_fixture.serving() as it:
      other = it.connection([0, 1], actor='other')
      hello = frames.pack_json(frames.HELLO, raw_lane.hello([5]))
      for data in (b'', hello[:10], hello[:50]):
        it.speak(data).close()
        other.step(0)
        other.step()
      it.connection([5]).step(0)

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
        it.connection([0, 1], token='\ud800', timestep='which is not checked')
      it.connection([0, 1], token='right').step(0)


class TestLateHandshake:
  HELLO = frames.pack_json(frames.HELLO, raw_lane.hello([2, 3]))

  def test_is_refused(self, monkeypatch):
    monkeypatch.setattr(frames, 'HANDSHAKE_SECONDS', 1.0)
    with inference_fixture.serving() as it:
      late = it.speak(self.HELLO[:40])
      other = it.connection([0])  # By now the first one is accepted, too.
      other.step(0)
      assert not select.select([late], [], [], 0)[0]  # Not yet.
      reason = raw_lane.read_reason(late)
      assert 'Waited 1 seconds for the handshake with which' in reason
      assert late.recv(1) == b''
      other.step()
      # Later connections still have time.
      early = it.speak(self.HELLO[:20])
      early.sendall(self.HELLO[20:])
      kind, _ = raw_lane.read_frame(early)
      assert kind == frames.WELCOME


class TestServerGone:
  def test_server_ends(self):
    with inference_fixture.serving(
      interface=network_interfaces.of_address('127.0.0.1'),
      window_seconds=DEADLINE_SECONDS,
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

  def test_silent_server(self):
    listener, address = addresses.listen()
    with (
      listener,
      pytest.raises(
        TimeoutError,
        match=f'Waited 0.3 seconds for a welcome from .* at {address}',
      ),
    ):
      client.InferenceClient(
        address,
        raw_lane.SPEC,
        [0],
        caller=callers.Caller('a'),
        timeout_seconds=0.3,
      )

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
