"""An Acme actor that checks the order of its calls."""

import dm_env
import numpy as np
from acme import core as acme_core


class AcmeActor(acme_core.Actor):
  """Random actor for one environment, which rejects calls out of order.

  The order is `observe_first`, then `select_action` and `observe` until the
  last timestep; `observe_first` may come at any time.
  """

  def __init__(self, seed=0):
    self._random = np.random.default_rng(seed)
    self._expected = 'observe_first'
    self._action = None
    self._observation = None
    self._return = 0.0
    self.returns = []
    self.actions = []
    self.num_episodes = 0
    self.num_updates = 0

  def observe_first(self, timestep):
    assert isinstance(timestep.step_type, dm_env.StepType), timestep
    assert timestep.first(), timestep
    assert timestep.reward is None, timestep
    assert timestep.discount is None, timestep
    assert timestep.observation.shape == (10, 5), timestep
    self.num_episodes += 1
    self._return = 0.0
    self._observation = timestep.observation
    self._expected = 'select_action'

  def select_action(self, observation):
    assert self._expected == 'select_action', self._expected
    np.testing.assert_array_equal(observation, self._observation)
    self._action = self._random.integers(3, dtype=np.int32)
    self.actions.append(int(self._action))
    self._expected = 'observe'
    return self._action

  def observe(self, action, next_timestep):
    assert self._expected == 'observe', self._expected
    assert np.shape(action) == (), action
    assert action == self._action, (action, self._action)
    assert not next_timestep.first(), next_timestep
    assert np.shape(next_timestep.reward) == (), next_timestep
    assert np.shape(next_timestep.discount) == (), next_timestep
    self._return += float(next_timestep.reward)
    self._observation = next_timestep.observation
    self._expected = 'select_action'
    if next_timestep.last():
      self.returns.append(self._return)
      self._expected = 'observe_first'

  def update(self, wait=False):
    self.num_updates += 1
