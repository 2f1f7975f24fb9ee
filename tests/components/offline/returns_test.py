"""Tests of `components/offline/returns.py`."""

import numpy as np

from repertory.components import offline
from support.replay import recorded_episodes
from support.replay.recorded_episodes import FIRST, LAST, MID


def test_returns_of_all_time_steps():
  steps = offline.DataSetSteps(
    step_type=np.array([FIRST, MID, LAST, FIRST, MID, FIRST, LAST, MID, MID]),
    # Rewards and discounts at FIRST are ignored.
    reward=np.array([99, 4, 8, 99, 3, 99, 5, 99, 7], np.float32),
    discount=np.array([0, 0.5, 0, 0, 1, 0, 1, 0, 1], np.float32),
    observation=(),
    action=(),
  )
  expected = [
    # One of two steps: 4 + 0.9 · 0.5 · 8, and 8.
    *(7.6, 8, 0),
    # An episode that was truncated after a step.
    *(3, 0),
    # One of a step, and a part of another one.
    *(5, 0),
    *(7, 0),
  ]
  np.testing.assert_allclose(
    offline.discounted_returns(steps, 0.9), expected, rtol=1e-6
  )


def test_recordings_are_read_for_it_without_the_rest(tmp_path):
  recorded_episodes.write(tmp_path, ([(1, 3, True)],), 3).close()
  data = offline.open_data(str(tmp_path))
  (steps,) = data.read(
    recorded_episodes.SPEC._replace(observations=(), actions=())
  )
  assert steps.observation == steps.action == ()
  # Rewards of 11, 12 and 13: 11 + ½ (12 + ½ · 13), 12 + ½ · 13 and 13.
  np.testing.assert_array_equal(
    offline.discounted_returns(steps, 0.5), [20.25, 18.5, 13, 0]
  )
