"""RND: intrinsic rewards of random network distillation."""

import sonnet as snt
import tensorflow as tf
import tree

from repertory.agents.reward_models import (
  reward_model_builder,
  reward_model_config,
  rewarding,
)
from repertory.components import learners, losses, networks, specs

RNDConfig = reward_model_config.RNDConfig


class RNDRewards(rewarding.Rewards):
  """Adds intrinsic rewards of random network distillation to the environment's.

  They are errors in predicting a fixed random embedding of the next
  observation, divided by their running standard deviation.
  """

  def __init__(self, spec: specs.EnvironmentSpec, config: RNDConfig):
    """Creates target and predictor network for the observations of a spec."""
    super().__init__()
    self._config = config
    self._normalizer = networks.ObservationNormalizer(
      spec.observations, config.max_abs_observation, with_images=True
    )
    self._target, self._predictor = (
      networks.make_sequential(
        spec.observations,
        config.hidden_sizes,
        config.image_torso,
        snt.Linear(config.embedding_size, name='embedding'),
        name=name,
      )
      for name in ('target', 'predictor')
    )
    self._optimizer = learners.ClippedAdam(
      self._predictor.trainable_variables, config.learning_rate
    )
    self._scale = learners.RunningScale()

  def __call__(self, steps: rewarding.StepBatch):
    config, mask = self._config, steps.mask
    self._normalizer.update(
      tree.map_structure(lambda x: x[:, None], steps.next_observation),
      mask[:, None],
    )
    observation = self._normalizer(steps.next_observation)
    target = self._target(observation)  # [N, E]
    with tf.GradientTape() as tape:
      errors = losses.prediction_errors(self._predictor(observation), target)
      loss = losses.masked_mean(errors, mask)
    norm = self._optimizer.minimize(tape, loss)
    self._scale.update(errors[:, None], mask[:, None])
    intrinsic = errors / self._scale()  # [N]
    rewards = (
      config.extrinsic_coefficient * steps.reward
      + config.intrinsic_coefficient * intrinsic
    )
    return rewards, {
      'extrinsic_reward': losses.masked_mean(steps.reward, mask),
      'intrinsic_reward': losses.masked_mean(intrinsic, mask),
      'prediction_loss': loss,
      'prediction_gradient_norm': norm,
    }


class RNDBuilder(reward_model_builder.RewardModelBuilder):
  """RND: exploration by intrinsic rewards for novel observations.

  See https://arxiv.org/abs/1810.12894.
  """

  name = 'rnd'
  config_class = RNDConfig
  rewards_class = RNDRewards
