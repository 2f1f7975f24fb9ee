"""Update of SAC."""

import math
from collections.abc import Callable

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import additional_loss as additional
from repertory.agents.actor_critic import policy_and_critic
from repertory.agents.replay import experience_replay
from repertory.agents.sac import config as sac_config
from repertory.agents.sac import critic_learning
from repertory.components import interfaces, learners, losses, networks, types
from repertory.components.actions import action_scaling
from repertory.components.distributions import squashed_gaussian
from repertory.components.runtime import data_parallel

# Metrics of a step of the policy.
_POLICY_METRICS = (
  'policy_loss', 'entropy', 'temperature', 'policy_gradient_norm',
)  # fmt: skip


def in_turn(
  improve_policy: Callable[..., dict[str, tf.Tensor]],
  config: sac_config.SACConfig,
) -> Callable[..., dict[str, tf.Tensor]]:
  """Delays policy updates to every `policy_update_period`-th call."""
  if config.policy_update_period == 1:
    return improve_policy
  return learners.DelayedUpdate(
    improve_policy, _POLICY_METRICS, config.policy_update_period
  )


class Temperature(tf.Module):
  """Temperature α, parameterized by log α; rises while entropy is below H̄."""

  def __init__(self, config: sac_config.SACConfig, target_entropy: float):
    super().__init__()
    self._target_entropy = target_entropy
    self._log_temperature = tf.Variable(
      math.log(config.initial_temperature),
      dtype=tf.float32,
      name='log_temperature',
    )
    self._optimizer = learners.ClippedAdam(
      [self._log_temperature],
      config.temperature_learning_rate,
      config.adam_epsilon,
      config.max_gradient_norm,
    )

  def __call__(self) -> tf.Tensor:
    """Returns α, a scalar."""
    return tf.exp(self._log_temperature)

  def improve(self, log_prob: tf.Tensor) -> None:
    """Takes a gradient step, given log π of the policy's actions, `[B]`."""
    with tf.GradientTape() as tape:
      loss = losses.temperature_loss(self(), log_prob, self._target_entropy)
    self._optimizer.minimize(tape, loss)


class SACUpdate(interfaces.Update):
  """SAC: updates critics, policy and temperature, in this order.

  See https://arxiv.org/abs/1812.05905, algorithm 1. Critics and log-densities
  are of actions scaled to [−1, 1].
  """

  def __init__(
    self,
    policy_network: snt.Module,
    critics: networks.CriticEnsemble,
    target_critics: networks.CriticEnsemble | None,
    scaling: action_scaling.ActionScaling,
    config: sac_config.SACConfig,
    additional_loss: additional.AdditionalLoss | None = None,
  ):
    super().__init__(policy_network)
    self._policy_network = policy_network
    self._scaling = scaling
    self._config = config
    self._additional_loss = additional_loss
    self._distribution = squashed_gaussian.SquashedGaussian(scaling.size)
    target_entropy = config.target_entropy
    self._temperature = Temperature(
      config, -float(scaling.size) if target_entropy is None else target_entropy
    )
    self._policy_optimizer = learners.ClippedAdam.from_config(
      policy_network,
      config,
      config.policy_learning_rate or config.learning_rate,
      first_decay=config.adam_first_decay,
    )
    self._importance_weights = experience_replay.ImportanceWeights(config)
    self._noise = learners.UpdateNoise()
    self._critics = critic_learning.CriticLearning(
      critics, target_critics, config, self._noise
    )
    self._improve_policy_in_turn = in_turn(self._improve_policy, config)

  @property
  def learned(self):
    return {**super().learned, 'statistics': self._critics.statistics}

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    data = sample.data
    batch_size = tf.shape(data.reward)[0]
    # For actions of the next and the current states.
    noise_t, noise_tm1 = tf.unstack(
      self._noise.normals([2, batch_size, self._scaling.size])
    )  # [B, D]
    critic_metrics, sizes = self._critics.improve(
      data,
      self._scaling.from_action(data.action),
      critic_learning.Sampled(*self._act(data.next_observation, noise_t)),
      self._temperature(),
      self._importance_weights(sample),
      self._propose(data),
      lambda: self._evaluate_additional(sample),
    )
    policy_metrics = self._improve_policy_in_turn(sample, noise_tm1)
    self._critics.update_target()
    return interfaces.UpdateResult(
      additional.merge(critic_metrics, policy_metrics),
      priorities=sizes if self._config.prioritized else None,
    )

  def _propose(self, data: types.Transition) -> critic_learning.Sampled | None:
    if self._config.conservative_weight is None:
      return None
    policy = data_parallel.split_rows(self._policy_network)
    return critic_learning.propose(
      (policy(data.observation), policy(data.next_observation)),
      self._distribution.sample,
      self._noise,
      self._config.num_conservative_actions,
      self._scaling.size,
    )

  def _act(
    self, observation: types.Nest, noise: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Samples actions of the policy, `[B, D]`, with their log π, `[B]`."""
    policy = data_parallel.split_rows(self._policy_network)
    return self._distribution.sample(policy(observation), noise)

  def _evaluate_additional(
    self, sample: types.Sample
  ) -> tuple[tf.Tensor | float, dict[str, tf.Tensor]]:
    both = policy_and_critic.Networks(
      self._policy_network, self._critics.critics
    )
    return additional.evaluate(self._additional_loss, both, sample)

  def _improve_policy(
    self, sample: types.Sample, noise: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    """Updates policy and temperature."""
    observation, alpha = sample.data.observation, self._temperature()
    with tf.GradientTape() as tape:
      with networks.batch_statistics():
        action, log_prob = self._act(observation, noise)  # [B, D], [B]
      value = self._critics.value(observation, action)  # [B]
      loss = losses.soft_policy_loss(value, log_prob, alpha)
      # Its metrics are logged by the critics' step.
      added, _ = self._evaluate_additional(sample)
      total = loss + added
    # The gradient step changes only the policy, not the critics.
    norm = self._policy_optimizer.minimize(tape, total)
    self._temperature.improve(log_prob)
    return {
      'policy_loss': loss,
      'entropy': -tf.reduce_mean(log_prob),
      'temperature': alpha,
      'policy_gradient_norm': norm,
    }
