"""Trains with Stable-Baselines3; runs in a virtual environment of its own.

Prints steps per second, its warm-up left out.
"""

import json
import sys
import time

import stable_baselines3
import torch
from stable_baselines3.common import callbacks, env_util, vec_env

# Of the steps, these come before the clock is started.
_WARM_UP_SHARE = 0.2


class _Clock(callbacks.BaseCallback):
  """Measures from the end of the warm-up on."""

  def __init__(self, steps):
    super().__init__()
    self._start = _WARM_UP_SHARE * steps
    self._began = None

  def _on_step(self):
    if self._began is None and self.num_timesteps >= self._start:
      self._began = self.num_timesteps, time.perf_counter()
    return True

  def rate(self):
    if self._began is None:
      raise RuntimeError('It ended before the clock was started.')
    steps, began = self._began
    return (self.num_timesteps - steps) / (time.perf_counter() - began)


def main():
  """Runs what the argument, a JSON object, asks for."""
  case = json.loads(sys.argv[1])
  torch.set_num_threads(1)  # Two take up to four times as long.
  if case['environment'].startswith('ALE/'):
    environments = env_util.make_atari_env(
      case['environment'], n_envs=case['environments'], seed=0
    )
    environments = vec_env.VecFrameStack(environments, n_stack=4)
    policy = 'CnnPolicy'
  else:
    environments = env_util.make_vec_env(
      case['environment'], n_envs=case['environments'], seed=0
    )
    policy = 'MlpPolicy'
  algorithm = getattr(stable_baselines3, case['algorithm'])
  model = algorithm(policy, environments, device='cpu', **case['settings'])
  clock = _Clock(case['steps'])
  model.learn(case['steps'], callback=clock)
  print(json.dumps({'steps_per_second': clock.rate()}))


if __name__ == '__main__':
  main()
