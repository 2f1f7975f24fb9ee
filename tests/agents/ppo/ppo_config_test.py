"""Tests of `agents/ppo/config.py`, and of its use by the builder."""

import os

import numpy as np
import pytest

from repertory import launch
from repertory.agents import ppo
from repertory.components import specs
from repertory.environments.registry import registry

SPEC = specs.EnvironmentSpec(
  observations={
    'x': specs.Array((3,), np.float32),
    'image': specs.Array((36, 36, 1), np.uint8),
  },
  actions=specs.DiscreteArray(3),
  rewards=specs.Array((), np.float32),
  discounts=specs.Array((), np.float32),
)


class TestSettings:
  @pytest.mark.parametrize(
    ('settings', 'message'),
    [
      ({'hidden_sizes': (0,)}, 'hidden_sizes must be a tuple'),
      ({'hidden_sizes': (64.5,)}, 'hidden_sizes must be a tuple of integers'),
      ({'hidden_sizes': 64}, 'hidden_sizes must be a tuple of .*, got 64'),
      ({'batch_size': 8.5}, 'batch_size must be an integer or None, got 8.5'),
      ({'shared_sizes': (4, 0)}, 'shared_sizes must be a tuple'),
      ({'image_torso': 'x'}, 'image_torso must be one of'),
      ({'core': 'x'}, 'core must be one of'),
      ({'unroll_length': 0}, 'unroll_length must be at least 1'),
      ({'batch_size': 0}, 'batch_size must be at least 1'),
      ({'num_epochs': 0}, 'num_epochs must be at least 1'),
      ({'num_minibatches': 0}, 'num_minibatches must be at least 1'),
      ({'num_minibatches': 1.5}, 'num_minibatches must be an integer'),
      ({'discount': 1.1}, r'discount must be in \[0, 1\]'),
      ({'lambda_': -0.1}, r'lambda_ must be in \[0, 1\]'),
      ({'clip_epsilon': 0.0}, 'clip_epsilon must be positive'),
      ({'value_clip_epsilon': 0.0}, 'value_clip_epsilon must be positive'),
      ({'target_kl': 0.0}, 'target_kl must be positive'),
      ({'anneal_learner_steps': 0}, 'anneal_learner_steps must be at least 1'),
      ({'learning_rate': 0.0}, 'learning_rate must be positive'),
      ({'max_gradient_norm': 0.0}, 'max_gradient_norm must be positive'),
      ({'entropy_cost': -1.0}, 'entropy_cost must be at least 0'),
      ({'entropy_cost': float('inf')}, 'entropy_cost must be finite'),
      ({'max_abs_reward': 0.0}, 'max_abs_reward must be positive'),
      ({'max_queue_size': 0}, 'max_queue_size must be at least 1'),
    ],
  )
  def test_what_is_wrong_is_named(self, settings, message):
    with pytest.raises(ValueError, match=message):
      ppo.PPOConfig(**settings)

  @pytest.mark.parametrize(
    ('num_environments', 'size'),
    [(1, 8), (3, 9), (5, 10), (8, 8), (12, 12), (64, 64)],
  )
  def test_a_batch_is_all_environments_unrolls(self, num_environments, size):
    builder = ppo.PPOBuilder()
    experience = builder.experience(SPEC, num_environments)
    assert experience.batch_size == size
    assert size % num_environments == 0
    experience.check(num_environments)  # One unroll of each at a time.

  def test_a_batch_size_that_is_set_stays(self):
    config = ppo.PPOConfig(batch_size=5)
    assert config.batch_size_for(8) == 5
    assert config.queue_size_for(8) == 13

  def test_a_memory_is_not_cut_up(self):
    for core, limit in (('none', 5 * 2 // 2), ('gru', 2)):
      settings = {'core': core, 'batch_size': 2, 'unroll_length': 5}
      fits = ppo.PPOConfig(**settings, num_minibatches=limit)
      assert fits.batch_size_for(1) == 2
      config = ppo.PPOConfig(**settings, num_minibatches=limit + 1)
      with pytest.raises(
        ValueError,
        match=f'num_minibatches must be at most {limit}, because a batch',
      ):
        config.batch_size_for(1)

  def test_a_single_step_has_no_advantage_over_itself(self):
    for changes, limit in (
      ({}, 5),
      ({'normalize_advantages': False}, 10),
      ({'core': 'gru', 'unroll_length': 1, 'batch_size': 6}, 3),
    ):
      settings = {'batch_size': 2, 'unroll_length': 5, **changes}
      ppo.PPOConfig(**settings, num_minibatches=limit).batch_size_for(1)
      config = ppo.PPOConfig(**settings, num_minibatches=limit + 1)
      with pytest.raises(
        ValueError,
        match=f'num_minibatches must be at most {limit}, because a batch',
      ):
        config.batch_size_for(1)

  @pytest.mark.parametrize('name', ppo.PRESETS)
  def test_presets_fit(self, name):
    config = ppo.PPOConfig(**ppo.PRESETS[name])
    assert config.batch_size_for(8) == 8


class TestRefusal:
  @pytest.mark.parametrize(
    ('settings', 'message'),
    [
      # A queue of 8 is full before a batch of 8 and another step are in it.
      ({'max_queue_size': 8}, 'batch_size [+] items per step = 8 [+] 8'),
      ({'batch_size': 40, 'max_queue_size': 20}, '= 40 [+] 8'),
      ({'core': 'lstm', 'num_minibatches': 9}, 'num_minibatches must be'),
    ],
  )
  def test_what_can_never_learn_does_not_start(
    self, settings, message, tmp_path
  ):
    directory = os.path.join(tmp_path, 'run')
    experiment = launch.Experiment(
      ppo.PPOBuilder(ppo.PPOConfig(**settings)),
      registry.make_factory('catch'),
      max_steps=1_000,
      directory=directory,
      environments_per_actor=8,
    )
    with pytest.raises(ValueError, match=message):
      launch.run(experiment, display=False)
    assert not os.path.exists(directory)


class TestNetwork:
  def test_policy_and_value_share_what_is_asked_for(self):
    names = {}
    for shared in ((), (5,)):
      config = ppo.PPOConfig(shared_sizes=shared, hidden_sizes=(4,))
      network = ppo.PPOBuilder(config).make_network(SPEC)
      names[shared] = [v.name for v in network.trainable_variables]
    assert len(names[5,]) == len(names[()]) + 2
    for stream in ('policy', 'value'):
      assert any(f'{stream}_layers' in name for name in names[()])

  def test_normalization_is_a_choice(self):
    for normalizes in (False, True):
      config = ppo.PPOConfig(normalize_observations=normalizes)
      network = ppo.PPOBuilder(config).make_network(SPEC)
      assert (network.normalizer is not None) == normalizes

  def test_untrained_policies_prefer_no_action(self):
    network = ppo.PPOBuilder().make_network(SPEC)
    random = np.random.default_rng(0)
    observation = {
      'x': random.normal(size=[50, 3]).astype(np.float32),
      'image': random.integers(256, size=[50, 36, 36, 1]).astype(np.uint8),
    }
    output, _ = network.step(observation, ())
    assert np.abs(output.parameters).max() < 0.2
