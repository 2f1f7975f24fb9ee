"""Tests of `components/actors/episode_metrics.py`."""

from typing import ClassVar

import dm_env
import numpy as np
import pytest

from repertory.components.actors import environment_loop, episode_metrics
from repertory.components.config.settings import SettingError

_FIRST, _MID, _LAST = dm_env.StepType


class _Recorded(episode_metrics.EpisodeMetric):
  """Records its calls of an episode; its value is a sum over them."""

  made: ClassVar[list] = []

  def __init__(self):
    self.made.append(self)
    self.episodes = []

  def begin(self, timestep):
    self.episodes.append([timestep])

  def step(self, action, timestep):
    self.episodes[-1].append((action, timestep))

  def value(self):
    return sum(a['move'] * t.reward for a, t in self.episodes[-1][1:])


class _Scripted:
  """Two slots; the second one's episode ends at its second step."""

  batch_size = 2

  def __init__(self):
    self._at = 0
    # Step types of both slots, at each step.
    self._types = [
      (_FIRST, _FIRST), (_MID, _MID), (_MID, _LAST), (_LAST, _FIRST),
      (_FIRST, _MID), (_MID, _LAST),
    ]  # fmt: skip

  def _record(self):
    first = np.array([t == _FIRST for t in self._types[self._at]])
    return dm_env.TimeStep(
      np.array(self._types[self._at]),
      np.where(first, 0.0, self._at + np.array([0.0, 10.0])),
      np.array([1.0, 0.5]),
      {'seen': np.array([[self._at, 0], [self._at, 1]])},
    )

  def reset(self):
    self._at = 0
    return self._record()

  def step(self, action):
    self._at += 1
    return self._record()


class _Actor:
  def __init__(self):
    self._moves = 0

  def observe_first(self, timestep):
    self._moves = 0

  def select_action(self, observation):
    self._moves += 1
    return {'move': np.array([self._moves, -self._moves])}

  def observe(self, action, timestep):
    pass

  def update(self):
    pass


class _Constant(_Recorded):
  def value(self):
    return np.float32(0.5)


@pytest.fixture(name='loop')
def _loop(monkeypatch):
  monkeypatch.setattr(_Recorded, 'made', [])
  loop = environment_loop.EnvironmentLoop(_Scripted(), _Actor())
  loop.measure(
    episode_metrics.EpisodeMetrics(
      {'recorded': _Recorded, 'constant': _Constant}, 2
    )
  )
  return loop


def test_values_are_of_the_episodes_that_end(loop):
  loop.reset()
  ended = [episode for _ in range(5) for episode in loop.step()[1]]
  # By slot: moves 1, 2, … times rewards 1, 2, …; and −moves times rewards of
  # 11, 12, … . Moves at FIRST are ignored.
  assert [(e.slot, e.length, e.metrics['recorded']) for e in ended] == [
    (1, 2, -1 * 11 - 2 * 12),
    (0, 3, 1 * 1 + 2 * 2 + 3 * 3),
    (1, 2, -4 * 14 - 5 * 15),
  ]
  assert all(e.metrics['constant'] == 0.5 for e in ended)


def test_a_metric_gets_one_slot_without_a_batch_axis(loop):
  loop.reset()
  for _ in range(3):
    loop.step()
  found = [one for one in _Recorded.made if type(one) is _Recorded]
  assert len(found) == 2
  (first,), (second, third) = found[0].episodes[:1], found[1].episodes
  begin, (action, timestep), *_ = first
  assert begin.step_type is _FIRST
  assert (begin.reward, begin.discount) == (None, None)
  np.testing.assert_array_equal(begin.observation['seen'], [0, 0])
  assert timestep.step_type is _MID
  assert (action['move'], timestep.reward, timestep.discount) == (1, 1.0, 1.0)
  np.testing.assert_array_equal(timestep.observation['seen'], [1, 0])
  assert [t.step_type for _, t in second[1:]] == [_MID, _LAST]
  assert second[2][1].discount == 0.5
  np.testing.assert_array_equal(third[0].observation['seen'], [3, 1])


def test_observation_is_what_the_environment_said():
  seen = []

  class Seeing(_Recorded):
    def begin(self, timestep):
      seen.append(timestep.observation)

  metrics = episode_metrics.EpisodeMetrics(
    {'seen': Seeing}, 2, original=lambda observation: observation['seen']
  )
  metrics.step(None, _Scripted().reset())
  np.testing.assert_array_equal(seen, [[0, 0], [0, 1]])


def test_value_that_is_no_number_is_named():
  class Wordy(_Recorded):
    def value(self):
      return 'many'

  metrics = episode_metrics.EpisodeMetrics({'words': Wordy}, 1)
  with pytest.raises(TypeError, match="'words' must be a number; got 'many'"):
    metrics.values(0)


@pytest.mark.parametrize(
  ('makers', 'recorded'),
  [
    ([_Recorded], 'must be a mapping of names to factories, got'),
    ({'count': _Recorded}, "not one of .*count.*; got 'count'"),
    ({'a': _Recorded()}, r"got .*_Recorded.* for 'a'\."),
    ({'a': 3}, "got 3 for 'a'"),
  ],
)
def test_invalid_metrics_are_refused(makers, recorded):
  with pytest.raises(SettingError, match=recorded) as caught:
    episode_metrics.check(makers)
  assert caught.value.setting == 'evaluation_metrics'
