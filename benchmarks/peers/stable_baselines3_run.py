"""Training with Stable-Baselines3, or with SBX, which has the same interface.

Runs in its own virtual environment.
"""

import importlib
import json
import sys

import gymnasium
import numpy as np
import reports
import torch
from stable_baselines3.common import (
  callbacks,
  env_util,
  noise,
  torch_layers,
  vec_env,
)


class _SharedLayers(torch_layers.BaseFeaturesExtractor):
  """Shared layers of policy and value function; by default they share none."""

  def __init__(self, observation_space, sizes):
    super().__init__(observation_space, features_dim=sizes[-1])
    self._layers = torch.nn.Sequential(
      *torch_layers.create_mlp(
        observation_space.shape[0], -1, sizes, torch.nn.ReLU
      )
    )

  def forward(self, observations):
    return self._layers(observations)


def _make_environments(case):
  """Returns a batch, stepped in a loop, and the matching kind of policy."""
  if not case['environment'].startswith('ALE/'):
    return env_util.make_vec_env(
      case['environment'], n_envs=case['environments'], seed=case['seed']
    ), 'MlpPolicy'
  gymnasium.register_envs(importlib.import_module('ale_py'))
  # The wrapper skips frames; Repertory's has no sticky actions.
  environments = env_util.make_atari_env(
    case['environment'],
    n_envs=case['environments'],
    seed=case['seed'],
    env_kwargs={'frameskip': 1, 'repeat_action_probability': 0.0},
    wrapper_kwargs={'terminal_on_life_loss': False},
  )
  return vec_env.VecFrameStack(environments, n_stack=4), 'CnnPolicy'


def main():
  """Runs the training described by the argument, a JSON object."""
  case = json.loads(sys.argv[1])
  report = reports.Report(case)
  torch.set_num_threads(1)  # Two take up to four times as long.
  environments, policy = _make_environments(case)
  settings = dict(case['settings'])
  if sizes := case.get('shared_sizes'):
    settings['policy_kwargs'] = {
      'features_extractor_class': _SharedLayers,
      'features_extractor_kwargs': {'sizes': sizes},
      'net_arch': [],
    }
  if sigma := case.get('sigma'):
    zeros = np.zeros(environments.action_space.shape)
    settings['action_noise'] = noise.NormalActionNoise(zeros, zeros + sigma)
  algorithm = getattr(
    importlib.import_module(case['library']), case['algorithm']
  )
  if case['library'] == 'stable_baselines3':
    settings['device'] = 'cpu'
  model = algorithm(policy, environments, seed=case['seed'], **settings)
  report.report_first_update(model, 'train')
  callback = None
  if 'solved_at' in case:
    callback = callbacks.EvalCallback(
      _make_environments(case | {'environments': 1})[0],
      callback_on_new_best=callbacks.StopTrainingOnRewardThreshold(
        case['solved_at']
      ),
      n_eval_episodes=case['evaluation_episodes'],
      eval_freq=case['evaluation_period'] // case['environments'],
      verbose=0,
    )
  model.learn(case['steps'], callback)
  report.write(
    steps=model.num_timesteps,
    solved=callback is not None
    and callback.best_mean_reward >= case['solved_at'],
  )


if __name__ == '__main__':
  main()
