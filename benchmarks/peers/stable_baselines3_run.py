"""Training with Stable-Baselines3, or with SBX, which has the same interface.

Runs in its own virtual environment.
"""

import importlib
import json
import sys

import gymnasium
import reports
import torch
from stable_baselines3.common import (
  callbacks,
  env_util,
  evaluation,
  torch_layers,
  vec_env,
)


class _Solved(callbacks.BaseCallback):
  """Evaluates periodically, and ends the run when the task is solved."""

  def __init__(self, case, report):
    super().__init__()
    self._solve = case['solve']
    self._next = self._solve['period']
    self._report = report
    self._environments = env_util.make_vec_env(
      case['environment'], n_envs=4, seed=1_000_000 + case['seed']
    )

  def _on_step(self):
    if self.num_timesteps < self._next:
      return True
    self._next += self._solve['period']
    with self._report.left_out():
      mean, _ = evaluation.evaluate_policy(
        self.model, self._environments, self._solve['episodes']
      )
    if mean < self._solve['threshold']:
      return True
    self._report.write(solved=self._report.costs(), mean=float(mean))
    return False


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


def _to_schedule(value):
  """Returns a linear schedule to 0 for 'linear 0.1'; else the value."""
  if not isinstance(value, str) or not value.startswith('linear '):
    return value
  initial = float(value.partition(' ')[2])
  return lambda remaining: remaining * initial


def main():
  """Runs the training described by the argument, a JSON object."""
  case = json.loads(sys.argv[1])
  report = reports.Report(case)
  torch.set_num_threads(1)  # Two take up to four times as long.
  environments, policy = _make_environments(case)
  settings = {
    name: _to_schedule(value) for name, value in case['settings'].items()
  }
  if sizes := case.get('shared_sizes'):
    settings['policy_kwargs'] = {
      'features_extractor_class': _SharedLayers,
      'features_extractor_kwargs': {'sizes': sizes},
      'net_arch': [],
    }
  algorithm = getattr(
    importlib.import_module(case['library']), case['algorithm']
  )
  if case['library'] == 'stable_baselines3':
    settings['device'] = 'cpu'
  model = algorithm(policy, environments, seed=case['seed'], **settings)
  report.tell_first_update(model, 'train')
  callback = _Solved(case, report) if case.get('solve') else None
  model.learn(case['steps'], callback=callback)
  report.write(steps=model.num_timesteps)


if __name__ == '__main__':
  main()
