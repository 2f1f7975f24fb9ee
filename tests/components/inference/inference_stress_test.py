"""Stress test of an inference server, with dying callers and new variables."""

import collections
import itertools
import time

import numpy as np
import pytest
import tensorflow as tf

from repertory.components import variables
from repertory.components.inference import frames
from support.launch import inference_fixture, raw_lane
from support.replay import replay_fixture
from support.system import program

NUM_THREADS = 4
LANE_SIZES = [1, 7, 2, 5, 3, 6, 4, 1]  # Of each thread.
NUM_FRAMES = 16
DEADLINE_SECONDS = 600.0


class CountingAdder:
  """Checks its arguments without storing them."""

  def __init__(self, connection):
    self._lane = connection
    self.actor = connection.actor
    self.num_steps = 0
    self.version = -1
    self.is_closed = False
    self._step_type = None

  def add_first(self, timestep):
    assert (timestep.step_type == raw_lane.FIRST).all()
    self._keep(timestep)

  def put(self, action, next_timestep, extras):
    asked = self._step_type != raw_lane.LAST
    expected = raw_lane.mix(self._lane.ids, self._observation)
    assert (action[asked, 0] == self._lane.ids[asked]).all(), action
    assert (action[asked, 1] == expected[asked]).all(), (action, expected)
    assert (action[asked, 2] == extras['count'][asked]).all()
    assert (action[asked, 3:] == self._lane.written_version).all()
    assert self._lane.written_version >= self.version
    self.version = self._lane.written_version
    self._keep(next_timestep)

  def is_ahead(self):
    return False

  def close(self):
    assert not self.is_closed
    self.is_closed = True

  def _keep(self, timestep):
    self.num_steps += 1
    # The arrays are reused.
    self._step_type = timestep.step_type.copy()
    self._observation = timestep.observation.copy()


class Caller:
  """A thread's lanes: all send, then all receive, and sometimes one dies."""

  def __init__(self, it, number):
    self._it = it
    self._number = number
    self._random = np.random.default_rng(number)
    self.num_requests = self.num_deaths = 0
    starts = np.cumsum([0, *LANE_SIZES])
    first = number * starts[-1]
    self._ids = [
      list(range(first + start, first + end))
      for start, end in itertools.pairwise(starts)
    ]
    self._connections = [self._connect(n) for n in range(len(self._ids))]

  def run(self, num_requests):
    """Sends requests, and ends properly."""
    nows = np.zeros(len(self._connections), int)
    while self.num_requests < num_requests:
      if self._random.random() < 0.02:
        self._replace(self._random.integers(len(self._connections)), nows)
      for connection, now in zip(self._connections, nows):
        connection.send(now)
      for connection in self._connections:
        connection.receive()
      self.num_requests += len(self._connections)
      nows = self._random.integers(1, NUM_FRAMES + 1, len(nows))
    for connection in self._connections:
      connection.finish()

  def _replace(self, number, nows):
    """Kills a lane in one of several ways, and starts its next generation."""
    connection, ids = self._connections[number], self._ids[number]
    how = self._random.integers(4)
    if how == 0:  # Torn.
      frame = connection.frames[nows[number]]
      connection.stream.sendall(frame[: self._random.integers(1, len(frame))])
    elif how == 1:  # It reconnects, but leaves before the welcome.
      connection.send(nows[number])
    elif how == 2:  # It comes up once more, but not to its welcome.
      message = raw_lane.hello(ids, actor=self._name(number))
      raw_lane.speak(
        self._it.address, frames.pack_json(frames.HELLO, message)
      ).close()
    is_noticed_late = self._random.random() < 0.5
    if not is_noticed_late:
      connection.close()
    self._connections[number] = self._connect(number)
    connection.close()
    nows[number] = 0
    self.num_deaths += 1

  def _name(self, number):
    return f'{self._number}/{number}'

  def _connect(self, number):
    return raw_lane.RawLane(
      self._it.address,
      self._ids[number],
      num_frames=NUM_FRAMES,
      seed=self._ids[number][0],
      actor=self._name(number),
    )


@pytest.mark.parametrize(
  'num_requests',
  # A few percent are enough for ordinary runs.
  [3_000, pytest.param(100_000, marks=pytest.mark.chaos)],
)
def test_stress(num_requests):
  policy = inference_fixture.EchoPolicy()
  theirs = [tf.Variable(0), tf.Variable(0)]
  publisher = variables.Publisher(theirs)
  published = variables.LocalVariableClient(publisher, policy.versions)
  publisher.publish(0, 1.0)
  with inference_fixture.serving(
    policy,
    num_environments=NUM_THREADS * sum(LANE_SIZES),
    buckets=(8, 32, 64),
    variables=published,
    make_adder=CountingAdder,
  ) as it:
    started_at = time.monotonic()
    callers = [Caller(it, number) for number in range(NUM_THREADS)]
    calls = [
      replay_fixture.Call(caller.run, num_requests // NUM_THREADS)
      for caller in callers
    ]
    version = 0
    while any(call.is_waiting(0.01) for call in calls):
      version += 1
      for variable in theirs:
        variable.assign(version)
      publisher.publish(version, 1.0)
      assert time.monotonic() - started_at < DEADLINE_SECONDS
    for call in calls:
      call.result()
    seconds = time.monotonic() - started_at
    row = it.server.report()
    # The last ones have gone, but the server may not have noticed yet.
    program.wait_until(
      lambda: it.server.report()['actors'] == 0, 10, 'all actors to be gone'
    )
    asked = sum(caller.num_requests for caller in callers)
    num_deaths = sum(caller.num_deaths for caller in callers)
    _check_adders(it.adders, num_requests, num_deaths)
  print(
    f'{asked} requests in {seconds:.0f} s, {num_deaths} deaths, '
    f'{version} versions, {row["rows_per_batch"]:.1f} rows per batch'
  )
  assert asked >= num_requests
  # A fiftieth of the rounds, of eight requests each, has one.
  assert num_deaths > num_requests / 8 / 50 / 2
  assert version > 10


def _check_adders(adders, num_requests, num_deaths):
  generations = collections.Counter(adder.actor for adder in adders)
  assert len(generations) == NUM_THREADS * len(LANE_SIZES)
  assert len(adders) >= len(generations) + num_deaths
  assert all(adder.is_closed for adder in adders)
  # Open steps of a generation may be lost at its end, at most a few.
  num_steps = sum(adder.num_steps for adder in adders)
  assert num_requests - 3 * num_deaths <= num_steps
  assert num_steps <= num_requests + 999 + num_deaths
  assert max(adder.version for adder in adders) > 10
