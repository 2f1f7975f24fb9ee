"""Update of QT-Opt."""

import tensorflow as tf

from repertory.agents.qtopt import config as qtopt_config
from repertory.agents.qtopt import targets as targets_lib
from repertory.agents.replay import experience_replay
from repertory.components import interfaces, learners, types
from repertory.components.actions import action_scaling
from repertory.components.networks import Critic
from repertory.components.runtime import data_parallel


class QTOptUpdate(interfaces.Update):
  """QT-Opt: Q-learning with maximization by the cross-entropy method.

  See https://arxiv.org/abs/1806.10293, section 4.2. Actions are scaled to
  [−1, 1]. Batches are transitions, whose targets are computed here, or
  `types.SampleWithTargets` of `targets.QTOptBellmanUpdater`.
  """

  def __init__(
    self,
    network: Critic,
    average: Critic,
    lagged: Critic,
    scaling: action_scaling.ActionScaling,
    config: qtopt_config.QTOptConfig,
  ):
    """Initializes the update.

    Args:
      network: Online Q-function of `networks.make_network`.
      average: θ̄_1, moving average of the Q-function, which also acts.
      lagged: θ̄_2, lagged copy of the average.
      scaling: Scaling of actions to [−1, 1].
      config: The config.
    """
    super().__init__()
    self._network = network
    self._targets = targets_lib.Targets(average, lagged, scaling, config)
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
    return {
      'policy': self._targets.average.variables,
      'lagged': self._targets.lagged.variables,
    }

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    config = self._config
    observation, action, targets = self._find_targets(sample.data)
    network = data_parallel.split_rows(self._network)
    action = self._scaling.from_action(action)  # [B, D]
    weights = self._importance_weights(sample)  # [B]
    with tf.GradientTape() as tape:
      outputs = tf.squeeze(network(observation, action), axis=-1)  # [B]
      values = tf.sigmoid(outputs) if config.bounded else outputs
      errors = targets - values  # [B]
      if config.bounded:
        item_losses = tf.nn.sigmoid_cross_entropy_with_logits(targets, outputs)
      else:
        item_losses = 0.5 * errors**2
      loss = tf.reduce_mean(weights * item_losses)
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
    return interfaces.UpdateResult(
      metrics, priorities=sizes if config.prioritized else None
    )

  def _find_targets(
    self, data: types.Transition | types.SampleWithTargets
  ) -> tuple[types.Nest, types.Nest, tf.Tensor]:
    """Returns observations, actions and targets `[B]`."""
    if isinstance(data, types.SampleWithTargets):
      return *data.data, data.target
    noise = self._noise.normals(self._targets.noise_shape(data))
    return data.observation, data.action, self._targets(data, noise)
