"""Builder of SQIL reward models."""

import tensorflow as tf

from repertory.agents.interface import builder
from repertory.agents.reward_models import rewarding, wrapping_builder
from repertory.agents.reward_models import steps as steps_lib
from repertory.agents.reward_models.sqil import config as sqil_config
from repertory.components import losses, specs


class SQILBuilder(wrapping_builder.ImitatingBuilder):
  """SQIL: imitation learning by rewards of demonstrated steps only.

  See https://arxiv.org/abs/1905.11108.
  """

  name = 'sqil'

  def __init__(
    self,
    wrapped: builder.Builder,
    config: sqil_config.SQILConfig | None = None,
  ):
    super().__init__(wrapped, config or sqil_config.SQILConfig())

  def make_rewards(self, spec: specs.EnvironmentSpec) -> rewarding.Rewards:
    del spec
    return SQILRewards(self.wrap_config)


class SQILRewards(rewarding.Rewards):
  """Constant rewards for demonstrations and for other steps."""

  def __init__(self, config: sqil_config.SQILConfig):
    super().__init__()
    self._config = config

  def __call__(self, steps: steps_lib.StepBatch):
    is_demonstration = steps_lib.demonstrations_of(steps)
    rewards = tf.where(
      is_demonstration,
      self._config.demonstration_reward,
      self._config.own_reward,
    )
    return rewards, {
      'imitation_reward': losses.masked_mean(rewards, steps.mask)
    }
