"""Histories of `sequence_twin`, replayed in a compiled loop and by an adder."""

import numpy as np
import tensorflow as tf
import tree

from repertory.components import replay, types
from repertory.components.anakin import acting
from repertory.components.transports import experience as experience_lib
from support.replay import recording_writer, sequence_twin

FIRST, MID, LAST = 0, 1, 2


class Script:
  """Scripted environments of a transport, which replay histories."""

  def __init__(self, histories):
    """Takes a history for each environment, of equal lengths."""
    self.num_environments = len(histories)
    self.num_steps = len(histories[0]) - 1
    rows = [
      tree.map_structure(lambda *leaves: np.stack(leaves), *history)
      for history in histories
    ]
    moments = tree.map_structure(lambda *leaves: np.stack(leaves, 1), *rows)
    self.versions = moments.version[:, 0]
    ended = np.where(moments.mask, MID, LAST)
    self._moments = tree.map_structure(tf.constant, moments)
    self._step_types = tf.constant(
      np.where(moments.first, FIRST, ended).astype(np.int32)
    )  # [M, N]

  def carry(self, time):
    """Returns the carry of a step at a time index."""
    size = self.num_environments
    return acting.Carry(
      environment=tf.fill([size], time),
      observation=self._at(self._moments.observation, time),
      step_type=self._step_types[time],
      policy=(),
      episode_return=tf.zeros([size], tf.float64),
      episode_length=tf.zeros([size], tf.int64),
    )

  def act(self, carry):
    """Takes a step of all environments: see `anakin.transport.Act`."""
    time = carry.environment[0]
    now = self._at(self._moments, time)
    following = self.carry(time + 1)
    lived = acting.Step(
      observation=carry.observation,
      first=tf.equal(carry.step_type, FIRST),
      action=now.action,
      extras=types.SequenceExtras(now.extras, now.state),
      reward=now.reward,
      discount=now.discount,
      happened=now.mask,
      ended=tf.equal(following.step_type, LAST),
    )
    episodes = acting.EndedEpisodes(
      tf.reduce_sum(tf.cast(now.mask, tf.int64)),
      lived.ended,
      carry.episode_return,
      carry.episode_length,
    )
    return following, lived, episodes

  def _at(self, nest, time):
    return tree.map_structure(lambda leaf: leaf[time], nest)


def make_experience(items, max_size=1000, batch_size=4, **settings):
  """Describes the experience of histories."""
  limit = replay.RateLimit(
    settings.get('samples_per_insert', 1.0),
    min_size=settings.get('min_size', 1),
    error_buffer=float('inf'),
  )
  signature = items.signature(sequence_twin.SPEC)
  exponent = settings.get('priority_exponent')
  if exponent is None:
    table = replay.uniform(signature, max_size, limit)
  else:
    table = replay.prioritized(signature, max_size, limit, exponent)
  return experience_lib.Experience(
    items,
    [table],
    batch_size,
    min_priority=settings.get('min_priority'),
  )


class _Counting:
  """An adder that records the number of items after each step."""

  def __init__(self, adder, writer):
    self._adder, self._writer, self.counts = adder, writer, []

  def add_first(self, timestep):
    self._adder.add_first(timestep)

  def add(self, *arguments):
    self._adder.add(*arguments)
    self.counts.append(len(self._writer.items))


def record(items, histories):
  """Returns the items that an adder makes, and their number after each step."""
  writer = recording_writer.RecordingWriter(items.signature(sequence_twin.SPEC))
  adder = _Counting(items.make_adder(writer, len(histories)), writer)
  sequence_twin.play(writer, adder, histories)
  return writer.items, adder.counts


class Player:
  """Replays histories on a transport that stores steps."""

  def __init__(self, transport, script):
    """Begins at the first step."""
    self.transport, self.time = transport, 0
    self._script = script
    self._carry = script.carry(0)
    self._collect = tf.function(
      lambda carry, version, priority: transport.collect(
        script.act, carry, version, priority
      )[0],
      autograph=False,
    )
    # All rows at once: those that cannot be sampled are ignored.
    size = transport._num_records * script.num_environments
    self._cut = tf.function(
      lambda: transport._cut(tf.range(size)), autograph=False
    )
    self._size = size
    transport.begin(self._carry)

  def step(self, max_priority=1.0):
    """Takes one step of all environments."""
    version = int(self._script.versions[self.time])
    self._carry = self._collect(
      self._carry,
      tf.constant(version, tf.int64),
      tf.constant(max_priority, tf.float64),
    )
    self.time += 1

  def weights(self):
    """Returns the weights of all rows."""
    return self.transport._tree.leaves.numpy()[: self._size]

  def drawable(self):
    """Returns all items that may be sampled, by environment and time of anchor.

    The time is that of the last step at that index of the ring buffer.
    """
    rows = np.flatnonzero(self.weights())
    items = self._cut()
    leaves = [leaf.numpy() for leaf in tree.flatten(items)]
    num_environments = self._script.num_environments
    num_moments = self.transport._num_records
    found = {}
    for row in rows.tolist():
      place, environment = divmod(row, num_environments)
      time = self.time - (self.time - place) % num_moments
      item = tree.unflatten_as(items, [leaf[row] for leaf in leaves])
      found[environment, time] = item
    return found

  def status(self):
    """Returns the status of the table."""
    (status,) = self.transport.statuses().values()
    return status


def assert_same_items(found, expected):
  """Compares items by key, with leaves and dtypes equal bit by bit."""
  assert found.keys() == expected.keys()
  keys = list(expected)
  sequence_twin.assert_equal(
    [found[key] for key in keys], [expected[key] for key in keys]
  )


def anchor_of(observation, histories):
  """Returns environment and time at which an observation was made."""
  slot = int(observation['place'][0])
  for time, moment in enumerate(histories[slot - 1]):
    if np.array_equal(moment.observation['place'], observation['place']):
      return slot - 1, time
  raise ValueError(f'None of the histories has {observation}.')


def check_held(player, made, max_size):
  """Compares the items that may be sampled with those of an adder so far."""
  held = player.drawable()
  status = player.status()
  assert status.inserts == len(made)
  assert status.size == len(held) <= max_size
  oldest = min((time for _, time in held), default=player.time)
  expected = {key: item for key, item in made.items() if key[1] >= oldest}
  assert_same_items(held, expected)
  dropped = [time for _, time in made if time < oldest]
  if dropped:
    # Removed as late as possible: one more step would exceed the size.
    assert len(held) + dropped.count(max(dropped)) > max_size
  return len(dropped)
