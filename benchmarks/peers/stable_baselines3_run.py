"""Training with Stable-Baselines3, or with SBX, which has the same interface.

Runs in its own virtual environment. With `final_seeds`, the policy is evaluated
during the run and at its end. A setting such as 'lin_0.2' is annealed to 0.
"""

import importlib
import json
import sys

import final_evaluation
import gymnasium
import numpy as np
import reports
import torch
from stable_baselines3.common import (
  callbacks,
  env_util,
  evaluation,
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
    environments = env_util.make_vec_env(
      case['environment'], n_envs=case['environments'], seed=case['seed']
    )
    if case.get('normalize'):
      environments = vec_env.VecNormalize(
        environments, gamma=case['settings']['gamma']
      )
    return environments, 'MlpPolicy'
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


class _Evaluations(callbacks.BaseCallback):
  """Reports evaluations between updates and rollouts, and at the end."""

  def __init__(self, case, report):
    super().__init__()
    self._period = self._next_at = case['evaluation_period']
    self._num_episodes = case['evaluation_episodes']
    self._report = report
    seeds = case['evaluation_seeds']
    self._environments, _ = _make_environments(
      case | {'environments': len(seeds), 'seed': seeds[0]}
    )
    if case.get('normalize'):
      self._environments.training = self._environments.norm_reward = False

  def _on_step(self):
    return True

  def _on_rollout_start(self):
    if self.model.num_timesteps >= self._next_at:
      self._evaluate()

  def _on_training_end(self):
    self._evaluate()

  def _evaluate(self):
    steps = self.model.num_timesteps
    self._next_at = self._period * (steps // self._period + 1)
    vec_env.sync_envs_normalization(self.training_env, self._environments)
    mean_return, _ = evaluation.evaluate_policy(
      self.model, self._environments, self._num_episodes
    )
    self._report.add_evaluation(steps, mean_return)


def _parse_schedule(value):
  """Returns the function of a value such as 'lin_0.2', in rl-zoo3's notation.

  Other values are returned unchanged.
  """
  if not (isinstance(value, str) and value.startswith('lin_')):
    return value
  start = float(value.removeprefix('lin_'))
  return lambda remaining: remaining * start


def main():
  """Runs the training described by the argument, a JSON object."""
  case = json.loads(sys.argv[1])
  report = reports.Report(case)
  torch.set_num_threads(1)  # Two take up to four times as long.
  environments, policy = _make_environments(case)
  settings = {
    name: _parse_schedule(value) for name, value in case['settings'].items()
  }
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
  if 'final_seeds' not in case:
    model.learn(case['steps'])
    report.write(steps=model.num_timesteps)
    return
  model.learn(case['steps'], _Evaluations(case, report))
  report.write(steps=model.num_timesteps)

  def act(observations):
    if normalizer := model.get_vec_normalize_env():
      observations = normalizer.normalize_obs(observations)
    return model.predict(observations, deterministic=True)[0]

  returns = final_evaluation.evaluate(
    act, case['environment'], case['final_seeds']
  )
  report.write(returns=returns)


if __name__ == '__main__':
  main()
