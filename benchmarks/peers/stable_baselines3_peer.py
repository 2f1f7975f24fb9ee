"""Trains with Stable-Baselines3; runs in a virtual environment of its own.

Prints steps per second, its warm-up left out.
"""

import json
import sys

import ale_py
import clock
import gymnasium
import stable_baselines3
import torch
from stable_baselines3.common import (
  callbacks,
  env_util,
  torch_layers,
  vec_env,
)


class _Callback(callbacks.BaseCallback):
  """Tells the clock of the steps."""

  def __init__(self, watch):
    super().__init__()
    self._clock = watch

  def _on_step(self):
    self._clock.count(self.num_timesteps)
    return True


class _SharedLayers(torch_layers.BaseFeaturesExtractor):
  """What policy and value have in common; by default they share no layers."""

  def __init__(self, observation_space, sizes):
    super().__init__(observation_space, features_dim=sizes[-1])
    self._layers = torch.nn.Sequential(
      *torch_layers.create_mlp(
        observation_space.shape[0], -1, sizes, torch.nn.ReLU
      )
    )

  def forward(self, observations):
    return self._layers(observations)


def main():
  """Runs what the argument, a JSON object, asks for."""
  case = json.loads(sys.argv[1])
  torch.set_num_threads(1)  # Two take up to four times as long.
  if case['environment'].startswith('ALE/'):
    gymnasium.register_envs(ale_py)
    # The wrapper skips frames, and ours has no sticky actions.
    environments = env_util.make_atari_env(
      case['environment'],
      n_envs=case['environments'],
      seed=0,
      env_kwargs={'frameskip': 1, 'repeat_action_probability': 0.0},
      wrapper_kwargs={'terminal_on_life_loss': False},
    )
    environments = vec_env.VecFrameStack(environments, n_stack=4)
    policy = 'CnnPolicy'
  else:
    environments = env_util.make_vec_env(
      case['environment'], n_envs=case['environments'], seed=0
    )
    policy = 'MlpPolicy'
  algorithm = getattr(stable_baselines3, case['algorithm'])
  settings = dict(case['settings'])
  if sizes := case.get('shared_sizes'):
    settings['policy_kwargs'] = {
      'features_extractor_class': _SharedLayers,
      'features_extractor_kwargs': {'sizes': sizes},
      'net_arch': [],
    }
  model = algorithm(policy, environments, device='cpu', **settings)
  watch = clock.Clock(case['steps'])
  model.learn(case['steps'], callback=_Callback(watch))
  watch.print_rate()


if __name__ == '__main__':
  main()
