"""SQIL: constant rewards for demonstrations."""

import tensorflow as tf

from repertory.agents.reward_models import (
  reward_model_builder,
  reward_model_config,
  rewarding,
)
from repertory.components import losses, specs

SQILConfig = reward_model_config.SQILConfig


class SQILRewards(rewarding.Rewards):
  """Constant rewards for demonstrations and for other steps."""

  def __init__(self, spec: specs.EnvironmentSpec, config: SQILConfig):
    del spec
    super().__init__()
    self._config = config

  def __call__(self, steps: rewarding.StepBatch):
    rewards = tf.where(
      steps.is_demonstration,
      self._config.demonstration_reward,
      self._config.own_reward,
    )
    return rewards, {
      'imitation_reward': losses.masked_mean(rewards, steps.mask)
    }


class SQILBuilder(reward_model_builder.RewardModelBuilder):
  """SQIL: imitation learning by rewards of demonstrated steps only.

  See https://arxiv.org/abs/1905.11108.
  """

  name = 'sqil'
  imitates = True
  config_class = SQILConfig
  rewards_class = SQILRewards
