"""Bellman targets of QT-Opt, for the learner and for Bellman updaters."""

import tensorflow as tf

from repertory.agents.qtopt import config as qtopt_config
from repertory.agents.qtopt import networks
from repertory.components import interfaces, losses, types
from repertory.components.actions import action_scaling
from repertory.components.networks import Critic
from repertory.components.runtime import data_parallel


class Targets(tf.Module):
  """Computes Bellman targets (the paper, equation 1 and section 4.2).

  The value of the next state is the minimum of both networks.

  Attributes:
    average: θ̄_1, which is maximized over actions.
    lagged: θ̄_2, lagged copy of the average.
  """

  def __init__(
    self,
    average: Critic,
    lagged: Critic,
    scaling: action_scaling.ActionScaling,
    config: qtopt_config.QTOptConfig,
  ):
    """Initializes the targets with networks of `networks.make_network`."""
    super().__init__()
    self.average = average
    self.lagged = lagged
    self._size = scaling.size
    self._config = config

  def noise_shape(self, data: types.Transition) -> list:
    """Returns the shape of the noise of the search."""
    config = self._config
    num_rows = tf.shape(data.reward)[0]
    return [config.num_iterations, num_rows, config.num_samples, self._size]

  def __call__(self, data: types.Transition, noise: tf.Tensor) -> tf.Tensor:
    """Returns the targets, `[B]`.

    Args:
      data: Transitions.
      noise: Gaussian noise, `[I, B, N, D]`.
    """
    config = self._config
    action, q_average = networks.maximize(
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


class QTOptBellmanUpdater(interfaces.BellmanUpdater):
  """Bellman updater of QT-Opt, which computes targets outside the learner.

  Items for the learner are `(observation, action)`.
  """

  def __init__(self, targets: Targets):
    """Initializes the updater with networks that follow the learner's."""
    super().__init__()
    self._targets = targets

  @property
  def variable_client(self):
    return {
      'policy': self._targets.average.variables,
      'lagged': self._targets.lagged.variables,
    }

  def __call__(self, sample, seed):
    data = sample.data
    shape = self._targets.noise_shape(data)
    noise = tf.random.stateless_normal(shape, seed)
    return (data.observation, data.action), self._targets(data, noise)
