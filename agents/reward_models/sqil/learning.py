"""Builder and reward model of SQIL."""

import tensorflow as tf

from repertory.agents.reward_models import reward_model_builder, rewarding, sqil
from repertory.components import losses, specs


class SQILBuilder(reward_model_builder.RewardModelBuilder):
  """SQIL: imitation learning by rewards of demonstrated steps only.

  See https://arxiv.org/abs/1905.11108.
  """

  name = 'sqil'
  imitates = True
  config_class = sqil.SQILConfig

  def make_rewards(self, spec: specs.EnvironmentSpec) -> rewarding.Rewards:
    del spec
    return SQILRewards(self.reward_model_config)


class SQILRewards(rewarding.Rewards):
  """Constant rewards for demonstrations and for other steps."""

  def __init__(self, config: sqil.SQILConfig):
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
