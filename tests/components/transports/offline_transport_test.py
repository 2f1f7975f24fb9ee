"""Tests of the transport of recorded data: its items equal the actor's."""

import numpy as np
import pytest
import tree

from repertory.components import adders, offline, replay, transports, types
from repertory.components.checkpoints import checkpointing
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.components.transports import experience
from support.replay import recorded_episodes, recording_writer
from support.replay.recorded_episodes import SPEC

_EPISODES = [
  (1, 2, True), (2, 7, False), (3, 1, True), (4, 4, False), (5, 9, True),
]  # fmt: skip
_STATE = types.SequenceExtras(state=SPEC.observations)
_ITEMS = {
  'transitions': adders.Transitions(1, 0.9),
  'three_steps': adders.Transitions(3, 0.9, max_abs_reward=40.0),
  'sequences': adders.Sequences(5, period=2, burn_in=1, extras_spec=_STATE),
  'unrolls': adders.Sequences(4, extras_spec=_STATE),
  'across_episodes': adders.Sequences(
    5, period=2, burn_in=1, across_episodes=True, extras_spec=_STATE
  ),
}


def _describe(items, prioritized=False, **settings):
  limit = replay.RateLimit(1.0, min_size=4, error_buffer=100.0)
  signature = items.signature(SPEC)
  table = replay.uniform(signature, 5, limit)
  if prioritized:
    table = replay.prioritized(signature, 5, limit, 1.0)
    settings['min_priority'] = 1e-3
  return experience.Experience(items, [table], batch_size=4, **settings)


def _record(directory, episodes=_EPISODES):
  """Records the episodes, one after the other; returns the data set."""
  num_steps = sum(length + 1 for _, length, _ in episodes) - 1
  recorded_episodes.write(directory, [episodes], num_steps).close()
  return offline.open_data(str(directory))


def _open(data, described, chunks=None, directory='', stop=None):
  place = local.WaitPolicy(20.0, stop or signals.StopSignal())
  transport = transports.OfflineTransport(
    described, transports.make_adder, data.lengths, seed=3, place=place,
    checkpoint_directory=str(directory),
  )  # fmt: skip
  transport.fill(data.read(SPEC) if chunks is None else chunks)
  return transport


def _played(items, episodes=_EPISODES):
  """Returns the items of an actor's adder from all episodes, as a list."""
  writer = recording_writer.RecordingWriter(items.signature(SPEC))
  adder = items.make_adder(writer, 1)
  stream = recorded_episodes.timesteps([episodes])
  adder.add_first(next(stream)[1])
  extras = ()
  if isinstance(items, adders.Sequences):
    extras = types.SequenceExtras(state=np.zeros([1, 2], np.float32))
  for _ in range(sum(length + 1 for _, length, _ in episodes) - 1):
    action, timestep = next(stream)
    adder.add(action, timestep, extras)
  if isinstance(items, adders.Sequences):  # Recorded data have no learner step.
    return [
      _as_text(item._replace(version=np.int64(-1))) for item in writer.items
    ]
  return [_as_text(item) for item in writer.items]


def _as_text(item):
  return str([np.asarray(leaf).tolist() for leaf in tree.flatten(item)])


def _held(transport):
  """Returns all items of a table, sampled until each has been seen."""
  end = transport.make_learner_side()
  found = {}
  size = next(iter(end.statuses().values())).size
  while len(found) < size:
    sample = next(end.batches)
    for i, key in enumerate(sample.keys):
      one = tree.map_structure(lambda leaf, i=i: leaf[i], sample.data)
      found[int(key)] = _as_text(one)
  end.close()
  return list(found.values())


@pytest.mark.parametrize('name', _ITEMS)
def test_items_equal_those_of_an_actor(tmp_path, name):
  items = _ITEMS[name]
  data = _record(tmp_path)
  held = _held(_open(data, _describe(items)))
  expected = _played(items)
  assert sorted(held) == sorted(expected)
  if items.slots_end_together:
    assert items.max_items_of(data.lengths) >= len(expected)
  else:  # The table is exactly full.
    assert items.max_items_of(data.lengths) == len(expected)


def test_truncated_episodes_are_bootstrapped_from(tmp_path):
  # Four time steps of an episode of nine steps, which does not terminate there.
  recorded_episodes.write(tmp_path, [[(5, 9, True)]], 3).close()
  data = offline.open_data(str(tmp_path))
  held = _held(_open(data, _describe(_ITEMS['three_steps'])))
  assert sorted(held) == sorted(_played(_ITEMS['three_steps'], [(5, 3, False)]))


def test_parts_of_an_episode_in_other_files_do_not_merge(tmp_path):
  data = _record(tmp_path)
  (steps,) = data.read(SPEC)
  # Cut in the middle of the second one, whose second part is its own then.
  parts = [
    tree.map_structure(lambda leaf, s=s: leaf[s], steps)
    for s in (slice(0, 6), slice(5, None))
  ]
  held = _held(_open(data, _describe(_ITEMS['transitions']), chunks=parts))
  assert sorted(held) == sorted(_played(_ITEMS['transitions']))


def test_images_are_cut_to_the_same_items(tmp_path):
  data = _record(tmp_path)
  (steps,) = data.read(SPEC)
  steps = steps._replace(observation=steps.observation.repeat(200, axis=1))
  spec = SPEC._replace(observations=SPEC.observations.replace(shape=(400,)))
  items = _ITEMS['transitions']
  limit = replay.RateLimit(1.0, min_size=4, error_buffer=100.0)
  table = replay.uniform(items.signature(spec), 5, limit)
  described = experience.Experience(items, [table], batch_size=4)
  assert described.table.packing.whole  # 1,600 bytes are large.
  end = _open(data, described, [steps]).make_learner_side()
  assert end.statuses()['replay'].size == 23
  found = next(end.batches).data
  # The next observation is of the same episode, one step later.
  moves = found.next_observation - found.observation
  assert (moves[:, 0] == 0).all() and (moves[:, 399] == 1).all()


class TestDraws:
  def test_they_follow_from_the_seed_and_resume(self, tmp_path):
    data, described = _record(tmp_path / 'data'), _describe(_ITEMS['unrolls'])
    straight = _open(data, described).make_learner_side()
    keys = [next(straight.batches).keys.tolist() for _ in range(6)]
    assert len({str(one) for one in keys}) > 1
    folder = tmp_path / 'snapshots'
    first = _open(data, described, directory=folder).make_learner_side()
    assert [next(first.batches).keys.tolist() for _ in range(3)] == keys[:3]
    first.flush()
    assert first.describe()['transport'] == 'data'
    first.take_snapshot()()
    second = _open(data, described, directory=folder).make_learner_side()
    assert [next(second.batches).keys.tolist() for _ in range(3)] == keys[3:]

  def test_priorities_are_used_and_resume(self, tmp_path):
    data = _record(tmp_path / 'data')
    described = _describe(_ITEMS['transitions'], prioritized=True)
    folder = tmp_path / 'snapshots'
    end = _open(data, described, directory=folder).make_learner_side()
    before = next(end.batches)
    # 2 + 7 + 1 + 4 + 9 = 23 items of the same priority.
    np.testing.assert_allclose(before.probabilities, 1 / 23)
    keys = np.arange(23, dtype=np.uint64)
    end.priorities.update(keys, np.where(keys == 7, 1.0, 1e-3))
    end.flush()
    end.take_snapshot()()
    expected = 1 / (1 + 22 * 1e-3)
    end = _open(data, described, directory=folder).make_learner_side()
    sample = next(end.batches)
    assert (sample.keys == 7).sum() >= 3  # Of four.
    likely = sample.probabilities[sample.keys == 7]
    np.testing.assert_allclose(likely, expected)

  def test_of_other_data_they_restart(self, tmp_path):
    described = _describe(_ITEMS['transitions'], prioritized=True)
    folder = tmp_path / 'snapshots'
    data = _record(tmp_path / 'data')
    end = _open(data, described, directory=folder).make_learner_side()
    end.priorities.update(np.uint64([0]), np.float64([50]))
    end.take_snapshot()()
    # The same number, but the last one does not terminate.
    others = [*_EPISODES[:-1], (5, 9, False)]
    data = _record(tmp_path / 'other', others)
    transport = _open(data, described, directory=folder)
    assert not transport.is_resumed
    end = transport.make_learner_side()
    np.testing.assert_allclose(next(end.batches).probabilities, 1 / 23)

  def test_other_files_are_refused(self, tmp_path):
    data, folder = _record(tmp_path / 'data'), tmp_path / 'snapshots'
    (folder / 'draws').mkdir(parents=True)
    with pytest.raises(checkpointing.CheckpointError, match=r'draws\.json'):
      _open(data, _describe(_ITEMS['unrolls']), directory=folder)


class TestRefusals:
  def test_queues(self):
    items = _ITEMS['unrolls']
    table = replay.queue(items.signature(SPEC), 10)
    described = experience.Experience(items, [table], batch_size=2)
    with pytest.raises(ValueError, match='learns from each item once'):
      transports.check_offline(described)

  def test_outputs_of_its_own_policy(self):
    items = adders.Transitions(1, 0.9, extras_spec={'logits': SPEC.rewards})
    with pytest.raises(ValueError, match='outputs of its own policy'):
      transports.check_offline(_describe(items))

  def test_a_stop_ends_the_reading(self, tmp_path):
    stop = signals.StopSignal()
    stop.set()
    with pytest.raises(signals.Stopped):
      _open(_record(tmp_path), _describe(_ITEMS['transitions']), stop=stop)
