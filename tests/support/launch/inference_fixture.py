"""Inference servers for tests, with their policies and recording adders."""

import contextlib
import threading

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.components import interfaces, specs
from repertory.components.actors import environment_loop
from repertory.components.inference import (
  client,
  server,
  state_store,
)
from repertory.components.network import callers
from repertory.components.runtime import signals
from repertory.environments.batches import batch
from support.launch import raw_lane
from support.replay import recording_adder, replay_fixture

DEADLINE_SECONDS = raw_lane.DEADLINE_SECONDS


class EchoPolicy(interfaces.Policy):
  """Policy of `raw_lane.SPEC`, both variables of which hold the version."""

  def __init__(self):
    super().__init__()
    self.versions = [tf.Variable(0), tf.Variable(0)]

  def initial_state(self, environment_ids):
    return {
      'id': tf.constant(list(environment_ids), tf.int32),
      'count': tf.fill([len(environment_ids)], 1000),
    }

  def step(self, observation, state):
    ones = tf.ones_like(state['id'])
    action = tf.stack(
      [
        state['id'],
        raw_lane.mix(state['id'], observation),
        state['count'],
        self.versions[0] * ones,
        self.versions[1] * ones,
      ],
      axis=1,
    )
    return interfaces.PolicyOutput(
      action,
      {'count': state['count']},
      {'id': state['id'], 'count': state['count'] + 1},
    )

  def reset_state(self, state, first):
    count = tf.where(first, tf.zeros_like(state['count']), state['count'])
    return {'id': state['id'], 'count': count}


class GatedAdder(recording_adder.RecordingAdder):
  """Recording adder that can block, as under a rate limiter, or fail."""

  def __init__(self, connection):
    super().__init__()
    self._lane = connection
    self.actor = connection.actor
    self.batch_size = connection.batch_size
    self.versions = []
    self.error = None
    self.gate = threading.Event()
    self.gate.set()
    self.is_closed = False
    self.num_waits = 0

  def add_first(self, timestep):
    self._fail()
    super().add_first(timestep)

  def put(self, action, next_timestep, extras=()):
    self._fail()
    self.versions.append(self._lane.written_version)
    super().add(action, next_timestep, extras)

  def is_ahead(self):
    return not self.gate.is_set()

  def wait(self):
    self.num_waits += 1
    if not self.gate.wait(DEADLINE_SECONDS):
      raise AssertionError('The test did not open the gate.')
    self._fail()

  def close(self):
    self.wait()
    assert not self.is_closed, 'closed twice'
    self.is_closed = True

  def _fail(self):
    if self.error is not None:
      raise self.error


class Serving:
  """A server in a thread, and the adders of its connections in order."""

  def __init__(
    self,
    policy=None,
    spec=raw_lane.SPEC,
    *,
    num_environments=16,
    buckets=(1, 4),
    make_adder=GatedAdder,
    configure=lambda adder: None,
    variables=None,
    **settings,
  ):
    self.spec = spec
    self.adders = []
    self.stop = signals.StopSignal()
    self._adder_class = make_adder
    self._configure = configure
    self._closing = []

    store = state_store.StateStore(
      policy or EchoPolicy(), spec.observations, num_environments, buckets
    )
    self.server = server.InferenceServer(
      spec,
      store,
      self._make_adder,
      variables,
      stop=self.stop,
      **settings,
    )
    self.address = self.server.address
    self.call = replay_fixture.Call(self._serve)

  def adder(self, actor):
    """Returns the adder of the actor's last generation."""
    return [adder for adder in self.adders if adder.actor == actor][-1]

  def connection(self, ids, actor='', **settings):
    """Connects a raw-frame actor."""
    actor = actor or f'raw/{ids[0]}'
    connection = raw_lane.RawLane(self.address, ids, actor=actor, **settings)
    self._closing.append(connection)
    return connection

  def speak(self, *data):
    """Connects and sends bytes; returns the stream."""
    stream = raw_lane.speak(self.address, *data)
    self._closing.append(stream)
    return stream

  def client(self, ids, actor='thin', **settings):
    """Connects a client."""
    settings = {'timeout_seconds': DEADLINE_SECONDS} | settings
    connection = client.InferenceClient(
      self.address, self.spec, ids, caller=callers.Caller(actor), **settings
    )
    self._closing.append(connection)
    return connection

  def close(self):
    """Closes everything, and raises the server's error, if any."""
    for connection in self._closing:
      connection.close()
    self.stop.set()
    for adder in self.adders:
      if isinstance(adder, GatedAdder):
        adder.gate.set()
    self.call.result()

  def _serve(self):
    with contextlib.closing(self.server):
      self.server.serve()

  def _make_adder(self, connection):
    adder = self._adder_class(connection)
    self._configure(adder)
    self.adders.append(adder)
    return adder


@contextlib.contextmanager
def serving(*args, **settings):
  """Yields a `Serving`; fails if it failed, or left a thread."""
  with replay_fixture.no_threads_left():
    it = Serving(*args, **settings)
    try:
      yield it
    except BaseException as failure:
      try:
        it.close()
      except Exception as error:  # Most likely the reason why the test failed.
        raise error from failure
      raise
    it.close()


def make_batch(make_environment, ids):
  """Makes environments seeded by their ids."""
  return batch.EnvironmentBatch([make_environment(seed=i) for i in ids])


def make_spec(make_environment):
  """Returns the spec of one environment."""
  return specs.make_environment_spec(make_environment(seed=0))


class ThinLoop:
  """A thin actor in a loop."""

  def __init__(self, it, make_environment, ids, **settings):
    self.ids = list(ids)
    self.client = it.client(ids, **settings)
    self.loop = environment_loop.EnvironmentLoop(
      make_batch(make_environment, ids),
      client.ThinActor(self.client, it.spec, len(ids)),
    )

  def run(self, num_steps):
    """Steps all environments a number of times, and ends."""
    for _ in range(num_steps):
      self.loop.step()
    self.client.finish()
    self.client.close()


def assert_same_calls(found, expected, num_ended=None):
  """Compares the calls of two adders.

  After the end of an episode, action and extras are ignored; after the end of
  all, those of a thin actor must be zeros.
  """
  assert len(found) == len(expected), (len(found), len(expected))
  step_types, all_ended = None, 0
  for mine, theirs in zip(found, expected):
    is_first = isinstance(theirs[0], str)
    assert is_first == isinstance(mine[0], str)
    for a, b in zip(mine[1], theirs[1], strict=True):
      np.testing.assert_array_equal(a, b)
      assert a.dtype == b.dtype
    if not is_first:
      asked = step_types != raw_lane.LAST
      _assert_same_rows(mine[0], theirs[0], asked)
      tree.map_structure(
        lambda a, b, asked=asked: _assert_same_rows(a, b, asked),
        mine[2],
        theirs[2],
      )
      all_ended += not asked.any()
    step_types = np.array(theirs[1].step_type)
  if num_ended is not None:
    assert all_ended >= num_ended, all_ended


def _assert_same_rows(found, expected, asked):
  assert found.dtype == expected.dtype
  if np.issubdtype(found.dtype, np.floating):
    # The last bits of a matrix product depend on the batch.
    np.testing.assert_allclose(found[asked], expected[asked], 1e-4, 1e-5)
  else:
    np.testing.assert_array_equal(found[asked], expected[asked])
  if not asked.any():
    np.testing.assert_array_equal(found, np.zeros_like(found))


def restart(observations):
  """Returns first timesteps of episodes, with the observations `[B, ...]`."""
  size = len(observations)
  return dm_env.TimeStep(
    np.full([size], raw_lane.FIRST, np.int32),
    np.zeros([size], np.float32),
    np.ones([size], np.float32),
    np.asarray(observations),
  )
