"""The update of QT-Opt."""

import tensorflow as tf

from repertory.agents import experience_replay
from repertory.agents.qtopt import config as qtopt_config
from repertory.agents.qtopt import networks
from repertory.components import (
  action_scaling,
  data_parallel,
  learners,
  losses,
  programs,
  types,
)
from repertory.components.networks import Critic


class QTOptUpdate(programs.Update):
  """Brings values nearer to those of the best action that is found next.

  See https://arxiv.org/abs/1806.10293, section 4.2. Actions are scaled to
  [−1, 1].
  """

  def __init__(
    self,
    network: Critic,
    average: Critic,
    lagged: Critic,
    scaling: action_scaling.ActionScaling,
    config: qtopt_config.QTOptConfig,
  ):
    """Takes over the networks.

    Args:
      network: What is learned, a Q-function of `networks.make_network`.
      average: One of the same kind, made to follow: θ̄_1, which acts, too.
      lagged: One of the same kind, a past state of it: θ̄_2.
      scaling: Makes the environment's actions of those in [−1, 1].
      config: The settings.
    """
    super().__init__()
    self._network = network
    self._average = average
    self._lagged = lagged
    self._scaling = scaling
    self._config = config
    self._optimizer = learners.ClippedAdam(
      network.trainable_variables,
      config.learning_rate,
      config.adam_epsilon,
      config.max_gradient_norm,
    )
    self._importance_weights = experience_replay.ImportanceWeights(config)
    self._noise = learners.UpdateNoise()
    self._update_average = learners.SoftUpdate(
      network.variables, average.variables, config.target_update_rate
    )
    self._update_lagged = learners.PeriodicCopy(
      average.variables, lagged.variables, config.target_lag
    )

  @property
  def exports(self):
    return {'policy': self._average.variables}

  def __call__(self, sample: types.Sample) -> programs.UpdateResult:
    data, config = sample.data, self._config
    targets = self._targets(data)  # [B]
    network = data_parallel.by_rows(self._network)
    action = self._scaling.from_action(data.action)  # [B, D]
    weights = self._importance_weights(sample)  # [B]
    with tf.GradientTape() as tape:
      outputs = tf.squeeze(network(data.observation, action), axis=-1)  # [B]
      values = tf.sigmoid(outputs) if config.bounded else outputs
      errors = targets - values  # [B]
      if config.bounded:
        of_items = tf.nn.sigmoid_cross_entropy_with_logits(targets, outputs)
      else:
        of_items = 0.5 * errors**2
      loss = tf.reduce_mean(weights * of_items)
    norm = self._optimizer.minimize(tape, loss)
    self._update_average()
    self._update_lagged()
    sizes = tf.abs(errors)
    metrics = {
      'loss': loss,
      'td_error': tf.reduce_mean(sizes),
      'q_value': tf.reduce_mean(values),
      'gradient_norm': norm,
    }
    return programs.UpdateResult(
      metrics, priorities=sizes if config.prioritized else None
    )

  def _targets(self, data: types.Transition) -> tf.Tensor:
    """Returns what values should be, `[B]`: equation 1 and section 4.2."""
    config = self._config
    noise = self._noise.normals(
      [
        config.num_iterations,
        tf.shape(data.reward)[0],
        config.num_samples,
        self._scaling.size,
      ]
    )
    action, of_average = networks.maximize(
      self._average, data.next_observation, noise, config
    )  # [B, D], [B]
    lagged = data_parallel.by_rows(self._lagged)
    of_lagged = lagged(data.next_observation, action)  # [B, 1]
    q_t = tf.stack([of_average, of_lagged[:, 0]], axis=-1)  # [B, 2]
    if config.bounded:
      q_t = tf.sigmoid(q_t)
    targets = losses.clipped_double_q_targets(
      r_t=data.reward,
      # The adder applied γ between the rewards; this is the last factor.
      discount_t=config.discount * data.discount,
      q_t=q_t,
    )
    return tf.clip_by_value(targets, 0.0, 1.0) if config.bounded else targets
