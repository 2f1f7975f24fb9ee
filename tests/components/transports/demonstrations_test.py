"""Tests of demonstrations: recorded data in batches of replay."""

import math

import numpy as np
import pytest

from repertory.components import adders, offline, replay, transports
from repertory.components.config import settings
from repertory.components.replay import local
from repertory.components.runtime import signals
from repertory.components.transports import experience
from support.replay import recorded_episodes
from support.replay.recorded_episodes import SPEC

_ITEMS = adders.Transitions(1, 0.9)
_SIZE = 8
# Lengths of the recorded episode, and of the actor's.
_RECORDED, _LIVED = (5, 9, True), (7, 99, True)


def _describe(fraction, samples_per_insert=2.0):
  limit = replay.RateLimit(samples_per_insert, min_size=4, error_buffer=100.0)
  table = replay.prioritized(_ITEMS.signature(SPEC), 50, limit, 1.0)
  described = experience.Experience(
    _ITEMS, [table], batch_size=_SIZE, min_priority=1e-3
  )
  return described.with_demonstrations(fraction)


def _record(directory, episode=_RECORDED):
  recorded_episodes.write(directory, [[episode]], episode[1]).close()
  return offline.open_data(str(directory))


def _demonstrate(described, data):
  transport = transports.OfflineTransport(
    described.demonstrated, transports.TransportParts(), data.lengths, seed=3,
    place=local.WaitPolicy(20.0, signals.StopSignal()),
  )  # fmt: skip
  transport.fill(data.read(SPEC))
  return transports.Demonstrations(described, transport)


def _open(described, demonstrations, num_steps=40):
  """Returns a learner side with demonstrations, on which an actor has acted."""
  transport = transports.InProcessTransport(
    described, transports.TransportParts(), seed=1
  )
  adder = transport.make_adder(
    1, priority=lambda: 1.0, version=lambda: 0, max_pending_items=99
  )
  stream = recorded_episodes.timesteps([[_LIVED]])
  adder.add_first(next(stream)[1])
  for _ in range(num_steps):
    action, timestep = next(stream)
    adder.put(action, timestep, ())
  end = transport.make_learner_side()
  end.mix_in(demonstrations)
  return end


def _episodes(sample):
  return sample.data.observation[:, 0].astype(int).tolist()


def test_every_batch_has_its_share_in_even_places(tmp_path):
  described = _describe(0.25)
  end = _open(described, _demonstrate(described, _record(tmp_path)))
  sample = next(end.batches)
  # Two of eight, one in each half.
  assert _episodes(sample) == [7, 7, 7, 5, 7, 7, 7, 5]
  # One of nine rows is a demonstration; replay has forty items.
  assert sample.table_sizes.tolist() == [40, 40, 40, 9, 40, 40, 40, 9]
  np.testing.assert_allclose(
    sample.probabilities, 1 / sample.table_sizes.astype(float)
  )
  assert np.flatnonzero(sample.is_demonstration).tolist() == [3, 7]
  specs = end.batches.element_spec
  assert specs.is_demonstration.shape == sample.is_demonstration.shape
  assert specs.data.observation.shape == sample.data.observation.shape
  assert specs.keys.shape == sample.keys.shape == (8,)
  seen = {
    tuple(row)
    for _ in range(20)
    for row in next(end.batches).data.observation.tolist()
    if row[0] == 5
  }
  assert seen == {(5, t) for t in range(9)}


def test_priorities_of_demonstrations_do_not_reach_replay(tmp_path):
  described = _describe(0.5)
  end = _open(described, _demonstrate(described, _record(tmp_path)))
  keys = next(end.batches).keys
  end.priorities.update(keys, np.array([1, 99, 1, 99, 1, 99, 1, 99.0]))
  end.flush()
  np.testing.assert_allclose(next(end.batches).probabilities[0::2], 1 / 40)


def test_learner_steps_for_an_item_are_as_many_as_without(tmp_path):
  described = _describe(0.25)
  end = _open(described, _demonstrate(described, _record(tmp_path)))
  # 36 items beyond the first four, two samples per item, and eight per update.
  assert end.updates_due(0) == 36 * 2 // 8
  assert math.isclose(described.table.rate_limit.samples_per_insert, 1.5)


def test_sampling_resumes_from_a_checkpoint(tmp_path):
  described, data = _describe(0.25), _record(tmp_path / 'data')
  first = _demonstrate(described, data)
  end = _open(described, first)
  next(end.batches)
  saved = end.describe()['demonstrations']
  expected = next(end.batches).data.observation[3::4].tolist()
  second = _demonstrate(described, data)
  second.restore(saved)
  assert second.is_resumed
  found = next(_open(described, second).batches).data.observation[3::4]
  assert found.tolist() == expected
  other = _demonstrate(described, _record(tmp_path / 'other', (5, 9, False)))
  other.restore(saved)
  assert not other.is_resumed


@pytest.mark.parametrize('fraction', [0.05, 0.95])
def test_shares_of_nothing_are_refused(fraction):
  with pytest.raises(settings.SettingError, match='items of both'):
    _describe(fraction)
