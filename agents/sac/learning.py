"""The update of SAC."""

import math
from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

from repertory.agents import experience_replay
from repertory.agents.sac import config as sac_config
from repertory.agents.sac import critic_values
from repertory.components import (
  action_scaling,
  data_parallel,
  learners,
  losses,
  networks,
  programs,
  squashed_gaussian,
  types,
)

# What is told of a step of the policy.
_POLICY_METRICS = (
  'policy_loss', 'entropy', 'temperature', 'policy_gradient_norm',
)  # fmt: skip


class SACUpdate(programs.Update):
  """Improves critics, policy and temperature, in this order.

  See https://arxiv.org/abs/1812.05905, algorithm 1. Critics see actions scaled
  to [−1, 1]; the densities are those of scaled actions, too.
  """

  def __init__(
    self,
    policy_network: snt.Module,
    critics: networks.CriticEnsemble,
    target_critics: networks.CriticEnsemble,
    scaling: action_scaling.ActionScaling,
    config: sac_config.SACConfig,
  ):
    """Takes over the networks.

    Args:
      policy_network: Maps observations to parameters of a `SquashedGaussian`.
      critics: Map observations and actions `[B, D]` to outputs `[B, N K]`.
      target_critics: Critics of the same kind, made to follow.
      scaling: Makes the environment's actions of those in [−1, 1].
      config: The settings.
    """
    super().__init__()
    self._policy_network = policy_network
    self._critics = critics
    self._target_critics = target_critics
    self._scaling = scaling
    self._config = config
    self._distribution = squashed_gaussian.SquashedGaussian(scaling.size)
    self._target_entropy = (
      -float(scaling.size)
      if config.target_entropy is None
      else config.target_entropy
    )
    self._log_temperature = tf.Variable(
      math.log(config.initial_temperature),
      dtype=tf.float32,
      name='log_temperature',
    )
    self._policy_optimizer = self._make_optimizer(
      policy_network.trainable_variables, config.learning_rate
    )
    self._critic_optimizer = self._make_optimizer(
      critics.trainable_variables, config.learning_rate
    )
    self._temperature_optimizer = self._make_optimizer(
      [self._log_temperature], config.temperature_learning_rate
    )
    self._importance_weights = experience_replay.ImportanceWeights(config)
    self._update_target = learners.SoftUpdate(
      critics.variables, target_critics.variables, config.target_update_rate
    )
    self._noise = learners.UpdateNoise()
    self._values = critic_values.make(config, self._noise)
    self._improve_policy_in_turn = self._improve_policy
    if config.policy_update_period > 1:
      self._improve_policy_in_turn = learners.DelayedUpdate(
        self._improve_policy, _POLICY_METRICS, config.policy_update_period
      )

  @property
  def exports(self):
    return {'policy': self._policy_network.variables}

  def __call__(self, sample: types.Sample) -> programs.UpdateResult:
    data = sample.data
    batch_size = tf.shape(data.reward)[0]
    # For the actions of the next and of the first states.
    noise_t, noise_tm1 = tf.unstack(
      self._noise.normals([2, batch_size, self._scaling.size])
    )  # [B, D]
    weights = self._importance_weights(sample)  # [B]
    critic_metrics, sizes = self._improve_critics(data, noise_t, weights)
    policy_metrics = self._improve_policy_in_turn(data, noise_tm1)
    self._update_target()
    return programs.UpdateResult(
      {**critic_metrics, **policy_metrics},
      priorities=sizes if self._config.prioritized else None,
    )

  def _improve_critics(
    self, data: types.Transition, noise: tf.Tensor, weights: tf.Tensor
  ) -> tuple[dict, tf.Tensor]:
    policy, critics, target_critics = map(
      data_parallel.by_rows,
      (self._policy_network, self._critics, self._target_critics),
    )
    action_t, log_prob_t = self._distribution.sample(
      policy(data.next_observation), noise
    )  # [B, D], [B]
    targets = losses.soft_q_targets(
      r_t=data.reward,
      # The adder applied γ between the rewards; this is the last factor.
      discount_t=self._config.discount * data.discount,
      q_t=self._values.of_target(
        target_critics(data.next_observation, action_t, *self._dropout(data))
      ),
      log_prob_t=log_prob_t,
      temperature=self._temperature(),
    )  # [B, M]
    action_tm1 = self._scaling.from_action(data.action)  # [B, D]
    with tf.GradientTape() as tape:
      q_tm1 = critics(
        data.observation, action_tm1, *self._dropout(data)
      )  # [B, N K]
      errors = self._values.errors(q_tm1, targets)
      loss = tf.reduce_mean(weights * errors.losses)
    norm = self._critic_optimizer.minimize(tape, loss)
    metrics = {
      'critic_loss': loss,
      'td_error': tf.reduce_mean(errors.sizes),
      'q_value': tf.reduce_mean(q_tm1),
      'critic_gradient_norm': norm,
    }
    return metrics, errors.sizes

  def _dropout(self, data: types.Transition) -> list[tf.Tensor]:
    """Returns new masks of the critics' layers, `[B, N, S]`, if there are any.

    A number is 0 as often as `dropout_rate` says and else so large that the
    mean is 1.
    """
    rate = self._config.dropout_rate
    if not rate:
      return []
    _, sizes = self._config.critic_layers
    uniforms = self._noise.uniforms(
      [tf.shape(data.reward)[0], self._config.num_critics, sum(sizes)]
    )
    return [tf.cast(uniforms >= rate, tf.float32) / (1 - rate)]

  def _improve_policy(
    self, data: types.Transition, noise: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    """Improves the policy, and the temperature by it."""
    policy, critics = map(
      data_parallel.by_rows, (self._policy_network, self._critics)
    )
    temperature = self._temperature()
    with tf.GradientTape() as tape:
      action, log_prob = self._distribution.sample(
        policy(data.observation), noise
      )  # [B, D], [B]
      q = critics(data.observation, action, *self._dropout(data))  # [B, N K]
      loss = losses.soft_policy_loss(
        self._values.of_policy(q), log_prob, temperature
      )
    # Only the policy's variables are asked for: the critics stay as they are.
    norm = self._policy_optimizer.minimize(tape, loss)
    self._improve_temperature(log_prob)
    return {
      'policy_loss': loss,
      'entropy': -tf.reduce_mean(log_prob),
      'temperature': temperature,
      'policy_gradient_norm': norm,
    }

  def _improve_temperature(self, log_prob: tf.Tensor) -> None:
    with tf.GradientTape() as tape:
      loss = losses.temperature_loss(
        self._temperature(), log_prob, self._target_entropy
      )
    self._temperature_optimizer.minimize(tape, loss)

  def _temperature(self) -> tf.Tensor:
    return tf.exp(self._log_temperature)

  def _make_optimizer(
    self, variables: Sequence[tf.Variable], learning_rate: float
  ) -> learners.ClippedAdam:
    return learners.ClippedAdam(
      variables,
      learning_rate,
      self._config.adam_epsilon,
      self._config.max_gradient_norm,
    )
