"""Reference implementations of the adders, and histories for both.

A history is the list of step records of one slot. A record is a
`types.Sequence` of a single step, without axes: its observation, the action and
its results. At an episode's last observation the mask is false, and the results
are those of the next episode's start.
"""

import itertools
import math

import dm_env
import numpy as np
import tree
from dm_env import specs as dm_env_specs

from repertory.components import adders, specs, types
from support.replay import recording_writer

# All numbers follow from slot, episode and step; all are unique.
SPEC = specs.EnvironmentSpec(
  observations={
    'place': dm_env_specs.Array((3,), np.int64),
    'image': dm_env_specs.Array((2, 1), np.float32),
  },
  actions={
    'move': dm_env_specs.Array((), np.int32),
    'force': dm_env_specs.Array((2,), np.float32),
  },
  rewards=dm_env_specs.Array((), np.float32),
  discounts=dm_env_specs.BoundedArray((), np.float32, 0, 1),
)
EXTRAS_SPEC = types.SequenceExtras(
  step={'logits': dm_env_specs.Array((3,), np.float32)},
  state={
    'core': dm_env_specs.Array((2,), np.float32),
    'count': dm_env_specs.Array((), np.int64),
  },
)

# Value of entries to be ignored.
_POISON = -12345


def observe(slot, episode, t):
  """Returns observation o_t of an episode; 'place' encodes which it is."""
  number = 1000 * slot + 100 * episode + t
  return {
    'place': np.array([slot, episode, t], np.int64),
    'image': np.full((2, 1), number, np.float32),
  }


def act(slot, episode, t):
  """Returns action a_t."""
  number = 10 * (1000 * slot + 100 * episode + t)
  return {
    'move': np.array(number + 1, np.int32),
    'force': np.array([number + 2, number + 3], np.float32),
  }


def explain(slot, episode, t):
  """Returns the extras of step t."""
  number = -10 * (1000 * slot + 100 * episode + t)
  return {'logits': np.array([number - 1, number - 2, number - 3], np.float32)}


def make_sequences(**settings):
  """Describes items of a history."""
  return adders.Sequences(extras_spec=EXTRAS_SPEC, **settings)


def make_history(slot, rewards, num_moments, discounts=None):
  """Returns the first step records of a slot.

  Args:
    slot: Number of the slot, at least 1: zeros are for padding.
    rewards: Rewards of the steps of each episode, enough in total.
    num_moments: Number of records.
    discounts: Discounts, like the rewards; None for 1 in mid-episode and 0 at
      its end.
  """
  if discounts is None:
    discounts = [[1.0] * (len(row) - 1) + [0.0] for row in rewards]
  moments = []
  for episode, row in enumerate(rewards):
    for t in range(len(row) + 1):
      happened = t < len(row)
      action = act(slot, episode, t)
      extras = explain(slot, episode, t)
      if not happened:
        action, extras = tree.map_structure(
          lambda leaf: np.full_like(leaf, _POISON), (action, extras)
        )
      time = len(moments)
      state = {
        'core': np.array([1000 * slot + time, -time], np.float32),
        'count': np.int64(time),
      }
      moments.append(
        types.Sequence(
          observation=observe(slot, episode, t),
          first=np.bool_(t == 0),
          action=action,
          reward=np.float32(row[t] if happened else 0),
          discount=np.float32(discounts[episode][t] if happened else 1),
          mask=np.bool_(happened),
          extras=extras,
          state=state,
          version=np.int64(7 * time + 3),
        )
      )
  assert len(moments) >= num_moments
  return moments[:num_moments]


def make_histories(num_moments, lengths, seed=0):
  """Returns random histories, whose episodes terminate or are truncated.

  Args:
    num_moments: Number of records of each.
    lengths: Episode lengths to choose from, for each slot.
    seed: Seed of lengths, rewards and discounts.
  """
  random = np.random.default_rng(seed)
  histories = []
  for slot, choice in enumerate(lengths, 1):
    rewards, discounts = [], []
    while sum(len(row) + 1 for row in rewards) < num_moments:
      length = int(random.choice(choice))
      rewards.append(random.normal(0, 3, length).astype(np.float32))
      discounts.append(random.choice([0.0, 0.5, 1.0], length))
    histories.append(make_history(slot, rewards, num_moments, discounts))
  return histories


def make_writer(length):
  """Makes a writer that records items of histories, of a given length."""
  signature = make_sequences(length=length).signature(SPEC)
  return recording_writer.RecordingWriter(signature)


def record(sequences, histories):
  """Returns the items of a sequence adder for histories."""
  writer = make_writer(sequences.length)
  play(writer, sequences.make_adder(writer, len(histories)), histories)
  assert writer.num_items == len(writer.items)
  return writer.items


def play(writer, adder, histories):
  """Runs an adder through histories of equal lengths, one per slot."""
  times = [_stack(moments) for moments in zip(*histories)]  # Each [B, ...].
  version = [0]
  writer.version = lambda: version[0]
  adder.add_first(_timestep(None, times[0]))
  for now, then in itertools.pairwise(times):
    version[0] = int(now.version[0])
    extras = types.SequenceExtras(now.extras, now.state)
    given = tree.map_structure(
      np.array, (now.action, _timestep(now, then), extras)
    )
    adder.add(*given)
    # An actor may reuse its arrays.
    for leaf in tree.flatten(given):
      leaf[...] = 99


def _timestep(before, moment):
  """Returns the batch of timesteps of an index."""
  mid_or_last = np.where(moment.mask, dm_env.StepType.MID, dm_env.StepType.LAST)
  return dm_env.TimeStep(
    np.where(moment.first, dm_env.StepType.FIRST, mid_or_last),
    np.zeros_like(moment.reward) if before is None else before.reward,
    np.ones_like(moment.discount) if before is None else before.discount,
    moment.observation,
  )


def split(history):
  """Splits a history into episodes; returns each and whether it ended."""
  episodes = []
  for moment in history:
    if moment.first:
      episodes.append([])
    episodes[-1].append(moment)
  return [(moments, not moments[-1].mask) for moments in episodes]


def _forget_step(moment):
  if moment.mask:
    return moment
  zeros = tree.map_structure(np.zeros_like, moment)
  return zeros._replace(
    observation=moment.observation, first=moment.first, version=moment.version
  )


def make_items(history, length, period=None, burn_in=0, across_episodes=False):
  """Returns the items of a history, in the order of the adder's contract."""
  if across_episodes:
    # Between episodes no step happened; only its version is stored.
    parts = [([_forget_step(moment) for moment in history], False)]
  else:
    # The record of an episode's last observation is none of its steps.
    parts = [
      ([*moments[:-1], _only_observe(moments[-1])], ended)
      for moments, ended in split(history)
    ]
  window = length - 1 - burn_in
  items = []
  for moments, ended in parts:
    num_steps = len(moments) - 1
    for k in itertools.count():
      begin = k * (period or window)
      if begin + window > num_steps and not ended:
        break  # The item is still open.
      times = range(begin - burn_in, begin + window + 1)
      items.append(
        _make_item([moments[t] if 0 <= t <= num_steps else None for t in times])
      )
      if begin + window >= num_steps and ended:
        break
  return items


def make_transitions(history, n_step, gamma):
  """Returns the transitions of a history, from the equations.

  R_t = Σ_{i<k} γ^i r_{t+i+1} Π_{j<i} d_{t+j+1} and
  D_t = γ^(k-1) Π_{j<k} d_{t+j+1} with k = min(n, T − t).
  """
  transitions = []
  for moments, ended in split(history):
    num_steps = len(moments) - 1
    for t in range(num_steps if ended else num_steps - n_step + 1):
      steps = moments[t : min(t + n_step, num_steps)]
      discounts = [float(step.discount) for step in steps]
      total = sum(
        gamma**i * float(step.reward) * math.prod(discounts[:i])
        for i, step in enumerate(steps)
      )
      transitions.append(
        types.Transition(
          steps[0].observation,
          steps[0].action,
          total,
          gamma ** (len(steps) - 1) * math.prod(discounts),
          moments[t + len(steps)].observation,
          types.SequenceExtras(steps[0].extras, steps[0].state),
        )
      )
  return transitions


def _only_observe(moment):
  """Returns a record with zeros for all but its observation."""
  return tree.map_structure(np.zeros_like, moment)._replace(
    observation=moment.observation, first=moment.first
  )


def _make_item(moments):
  """Returns the item of T + 1 records, None for padding."""
  start = next(moment for moment in moments if moment is not None)
  zeros = tree.map_structure(np.zeros_like, start)
  moments = [zeros if moment is None else moment for moment in moments]
  everything, steps = _stack(moments), _stack(moments[:-1])
  return steps._replace(
    observation=everything.observation,
    first=everything.first,
    state=start.state,
    version=start.version,
  )


def _stack(moments):
  return tree.map_structure(lambda *leaves: np.stack(leaves), *moments)


def slot_of(item):
  """Returns the number of the slot of an item."""
  slots = set(item.observation['place'][:, 0].tolist()) - {0}
  assert len(slots) == 1, f'an item of slots {slots}'
  return slots.pop()


def assert_equal(found, expected):
  """Compares two lists of items, each leaf, with its dtype."""
  assert len(found) == len(expected)
  for index, (a, b) in enumerate(zip(found, expected)):
    tree.assert_same_structure(a, b)
    for (path, x), y in zip(tree.flatten_with_path(a), tree.flatten(b)):
      same = x.dtype == y.dtype and np.array_equal(x, y)
      assert same, f'item {index}, {path}:\n{x!r}\nis not\n{y!r}'
