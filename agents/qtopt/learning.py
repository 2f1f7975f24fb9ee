"""Builder, update and Bellman updater of QT-Opt."""

import dataclasses
from collections.abc import Sequence

import tensorflow as tf
import tree

from repertory.agents.actor_critic import exploration
from repertory.agents.qtopt import config as qtopt_config
from repertory.agents.qtopt import cross_entropy_method
from repertory.agents.replay import experience_replay
from repertory.components import (
  interfaces,
  learners,
  losses,
  networks,
  replay,
  types,
)
from repertory.components.actions import action_scaling
from repertory.components.runtime import data_parallel


class QTOptBuilder(experience_replay.TransitionReplayBuilder):
  """QT-Opt, Q-learning of continuous actions without a policy network.

  See https://arxiv.org/abs/1806.10293. The builder's network is the moving
  average of the Q-function, which acts.
  """

  config: qtopt_config.QTOptConfig

  def make_network(self, spec):
    # Values, or logits if they are bounded, `[B, 1]`.
    return networks.make_critic(
      spec, self.config.hidden_sizes, image_torso=self.config.image_torso
    )

  def make_policy(self, network, acting) -> interfaces.Policy:
    config = self.config
    size = action_scaling.ActionScaling(acting.spec.actions).size
    # The search is deterministic, because its noise is fixed.
    noise = cross_entropy_method.fixed_noise(
      config.num_iterations, config.num_samples, size
    )

    def act(observation: types.Nest) -> tf.Tensor:
      return _maximize(network, observation, tf.constant(noise), config).action

    return exploration.make_deterministic_policy(
      act, config.sigma, acting, config.num_random_steps
    )

  def make_update(self, network, spec):
    online = self.make_network(spec)
    scaling = action_scaling.ActionScaling(spec.actions)
    targets = QTOptBellmanUpdater(
      network, self.make_network(spec), scaling, self.config
    )
    update = QTOptUpdate(online, targets, scaling, self.config)
    return experience_replay.in_series(update, self.config)

  def make_bellman_updater(self, spec):
    average, lagged = self.make_network(spec), self.make_network(spec)
    scaling = action_scaling.ActionScaling(spec.actions)
    return QTOptBellmanUpdater(average, lagged, scaling, self.config)

  def experience(self, spec, num_environments):
    config = self.config
    if config.train_buffer_size is None:
      return super().experience(spec, num_environments)
    # Bellman updaters sample one batch of transitions at a time, less often by
    # the number of samples per target.
    updater_config = dataclasses.replace(
      config,
      samples_per_insert=config.samples_per_insert / config.samples_per_target,
      num_sgd_steps_per_step=1,
    )
    experience = experience_replay.describe(
      updater_config, self.transitions, spec, num_environments
    )
    # The learner begins as soon as the train buffer has items for a batch.
    batch_size, item = config.items_per_learner_step, experience.table.signature
    limit = replay.RateLimit.with_default_buffer(
      config.samples_per_target,
      min_size=batch_size,
      batch_size=batch_size,
      items_per_insert=experience.batch_size,
    )
    signature = types.SampleWithTargets(
      (item.observation, item.action),
      item.reward,
      version=tf.TensorSpec([], tf.int64),
    )
    table = replay.uniform(
      signature, config.train_buffer_size, limit, replay.TRAIN_BUFFER
    )
    with_targets = dataclasses.replace(
      experience,
      tables=[table],
      batch_size=batch_size,
      min_priority=None,
      setting_names={
        'max_size': 'train_buffer_size',
        'min_size': 'batch_size',
        'samples_per_insert': 'samples_per_target',
      },
    )
    return dataclasses.replace(experience, with_targets=with_targets)


def _maximize(
  network: networks.Critic,
  observation: types.Nest,
  noise: tf.Tensor,
  config: qtopt_config.QTOptConfig,
) -> cross_entropy_method.Maximum:
  """Maximizes the Q-function over actions by the cross-entropy method.

  Noise is Gaussian, `[I, B, N, D]` or `[I, 1, N, D]`. Returns actions `[B, D]`
  and their network outputs, `[B]`.
  """
  evaluate_rows = data_parallel.split_rows(network)
  num_rows = tf.shape(tree.flatten(observation)[0])[0]

  def evaluate(actions: tf.Tensor) -> tf.Tensor:
    shape = [num_rows, *actions.shape[1:]]
    outputs = evaluate_rows(observation, tf.broadcast_to(actions, shape))
    return tf.squeeze(outputs, axis=-1)  # [B, N]

  return cross_entropy_method.maximize(
    evaluate, noise, config.num_elites, config.initial_stddev
  )


class QTOptUpdate(experience_replay.ReplayUpdate):
  """QT-Opt: Q-learning with maximization by the cross-entropy method.

  See https://arxiv.org/abs/1806.10293, section 4.2. Actions are scaled to
  [−1, 1]. Batches are transitions, whose targets are computed here, or
  `types.SampleWithTargets` of `QTOptBellmanUpdater`.
  """

  def __init__(
    self,
    network: networks.Critic,
    targets: 'QTOptBellmanUpdater',
    scaling: action_scaling.ActionScaling,
    config: qtopt_config.QTOptConfig,
  ):
    super().__init__(None, config)
    self._network = network
    self._targets = targets
    self._scaling = scaling
    self._optimizer = learners.ClippedAdam.from_config(network, config)
    self._noise = learners.UpdateNoise()
    self._update_average = learners.SoftUpdate(
      network.variables, targets.average.variables, config.target_update_rate
    )
    self._update_lagged = learners.PeriodicCopy(
      targets.average.variables, targets.lagged.variables, config.target_lag
    )

  @property
  def exports(self):
    return self._targets.variable_client

  def _improve(self, sample, weights):
    config = self._config
    observation, action, targets = self._find_targets(sample.data)
    network = data_parallel.split_rows(self._network)
    action = self._scaling.from_action(action)  # [B, D]
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
    return metrics, sizes

  def _find_targets(
    self, data: types.Transition | types.SampleWithTargets
  ) -> tuple[types.Nest, types.Nest, tf.Tensor]:
    """Returns observations, actions and targets `[B]`."""
    if isinstance(data, types.SampleWithTargets):
      return *data.data, data.target
    noise = self._noise.normals(self._targets.noise_shape(data))
    targets = self._targets.targets(data, noise)
    return data.observation, data.action, targets


class QTOptBellmanUpdater(interfaces.BellmanUpdater):
  """Computes Bellman targets (the paper, equation 1 and section 4.2).

  The value of the next state is the minimum of both networks. It is part of
  the update, or runs outside the learner: then items for the learner are
  `(observation, action)`.

  Attributes:
    average: θ̄_1, moving average of the Q-function, which also acts.
    lagged: θ̄_2, lagged copy of the average.
  """

  def __init__(
    self,
    average: networks.Critic,
    lagged: networks.Critic,
    scaling: action_scaling.ActionScaling,
    config: qtopt_config.QTOptConfig,
  ):
    super().__init__()
    self.average = average
    self.lagged = lagged
    self._size = scaling.size
    self._config = config

  @property
  def variable_client(self) -> dict[str, Sequence[tf.Variable]]:
    return {'policy': self.average.variables, 'lagged': self.lagged.variables}

  def __call__(self, sample, seed):
    data = sample.data
    noise = tf.random.stateless_normal(self.noise_shape(data), seed)
    return (data.observation, data.action), self.targets(data, noise)

  def noise_shape(self, data: types.Transition) -> list:
    """Returns the shape of the noise of the search."""
    config = self._config
    num_rows = tf.shape(data.reward)[0]
    return [config.num_iterations, num_rows, config.num_samples, self._size]

  def targets(self, data: types.Transition, noise: tf.Tensor) -> tf.Tensor:
    """Returns the targets `[B]`, given Gaussian noise `[I, B, N, D]`."""
    config = self._config
    action, q_average = _maximize(
      self.average, data.next_observation, noise, config
    )  # [B, D], [B]
    lagged = data_parallel.split_rows(self.lagged)
    q_lagged = lagged(data.next_observation, action)  # [B, 1]
    q_t = tf.stack([q_average, q_lagged[:, 0]], axis=-1)  # [B, 2]
    if config.bounded:
      q_t = tf.sigmoid(q_t)
    targets = losses.clipped_double_q_targets(
      r_t=data.reward,
      # The adder applied γ between the rewards; this is the last factor.
      discount_t=config.discount * data.discount,
      q_t=q_t,
    )
    return tf.clip_by_value(targets, 0.0, 1.0) if config.bounded else targets
