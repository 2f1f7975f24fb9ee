"""Builder and update of R2D2."""

import functools

import tensorflow as tf
import tree

from repertory.agents.actor_critic import exploration
from repertory.agents.interface import builder
from repertory.agents.r2d2 import config as r2d2_config
from repertory.agents.replay import experience_replay
from repertory.components import (
  adders,
  interfaces,
  learners,
  losses,
  networks,
  policies,
  types,
)
from repertory.components.actions import action_masks, discrete_actions


class R2D2Builder(builder.Builder):
  """R2D2: recurrent, prioritized Q-learning over sequences with burn-in.

  See https://openreview.net/forum?id=r1lyTjAqYX.
  """

  config: r2d2_config.R2D2Config

  def make_network(self, spec):
    config = self.config
    num_actions = discrete_actions.DiscreteActions(spec.actions).num_actions
    network = networks.SequenceNetwork(
      networks.ObservationTorso(
        spec.observations, config.hidden_sizes, config.image_torso
      ),
      networks.make_core(config.core, config.core_size, **config.core_options),
      networks.make_value_head(num_actions, config.dueling),
    )
    network.create_variables(spec.observations)
    return network

  def make_policy(self, network, acting) -> interfaces.Policy:
    settings = exploration.epsilon_settings(self.config, acting)
    return policies.RecurrentEpsilonGreedyPolicy(network, **settings)

  def make_update(self, network, spec):
    target = self.make_network(spec)
    actions = discrete_actions.DiscreteActions(spec.actions)
    update = R2D2Update(network, target, self.config, actions)
    return experience_replay.in_series(update, self.config)

  def experience(self, spec, num_environments):
    config = self.config
    sequences = adders.Sequences(
      length=config.sequence_length,
      period=config.period,
      burn_in=config.burn_in_length,
      across_episodes=config.across_episodes,
      extras_spec=types.SequenceExtras(
        state=self.make_network(spec).state_spec()
      ),
    )
    return experience_replay.describe(
      config,
      sequences,
      spec,
      num_environments,
      max_pending_items_per_environment=1,
    )


class R2D2Update(experience_replay.ReplayUpdate):
  """R2D2: n-step double Q-learning over sequences with burn-in.

  The loss of a sequence is ½ Σ_t δ_t² over its steps after burn-in, without
  padding; the loss of a batch is the importance-weighted mean. See
  https://openreview.net/forum?id=r1lyTjAqYX, section 2.3.

  Networks output action values; `actions` maps actions to indices, if they are
  not indices.
  """

  def __init__(
    self,
    network: networks.SequenceNetwork,
    target_network: networks.SequenceNetwork,
    config: r2d2_config.R2D2Config,
    actions: discrete_actions.DiscreteActions | None = None,
  ):
    super().__init__(network, config)
    self._network = network
    self._target_network = target_network
    self._to_number = actions.from_action if actions else lambda action: action
    self._optimizer = learners.ClippedAdam.from_config(network, config)
    self._update_target = learners.PeriodicCopy(
      network.variables, target_network.variables, config.target_update_period
    )
    self._transforms = (tf.identity, tf.identity)
    if config.rescale_epsilon is not None:
      self._transforms = tuple(
        functools.partial(transform, epsilon=config.rescale_epsilon)
        for transform in (losses.rescale, losses.inverse_rescale)
      )

  def _improve(self, sample, weights):
    config = self._config
    data = learners.time_major(sample.data)
    mask = data.mask[config.burn_in_length :]  # [T, B]
    with tf.GradientTape() as tape:
      errors, q = self._errors(data)  # [T, B], [T + 1, B, A]
      loss = tf.reduce_mean(weights * tf.reduce_sum(0.5 * errors**2, axis=0))
    norm = self._optimizer.minimize(tape, loss)
    self._update_target()
    metrics = {
      'loss': loss,
      'td_error': losses.masked_mean(tf.abs(errors), mask),
      'q_value': losses.masked_mean(
        action_masks.mean_allowed(q[:-1], axis=-1), mask
      ),
      'gradient_norm': norm,
      'share_of_padding': 1 - tf.reduce_mean(tf.cast(mask, tf.float32)),
    }
    priorities = losses.sequence_priorities(
      errors, mask, config.max_priority_share
    )
    return metrics, priorities

  def _errors(self, data: types.Sequence) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns TD errors after burn-in, `[T, B]`, and q `[T + 1, B, A]`."""
    config = self._config
    transform, inverse_transform = self._transforms
    burn_in, window = _split(data, config.burn_in_length)
    q = self._values(self._network, data.state, burn_in, window)
    target_q = self._values(self._target_network, data.state, burn_in, window)
    errors = losses.sequence_double_q_errors(
      q=q,
      actions=self._to_number(window.action),
      rewards=window.reward,
      discounts=config.discount * window.discount,
      target_q=target_q,
      mask=window.mask,
      n_step=config.n_step,
      transform=transform,
      inverse_transform=inverse_transform,
    )
    return errors, q

  def _values(self, network, state, burn_in, window) -> tf.Tensor:
    """Unrolls a network after its own burn-in, to `[T + 1, B, A]`."""
    if self._config.burn_in_length:
      _, state = network.unroll(burn_in.observation, burn_in.first, state)
      state = tree.map_structure(tf.stop_gradient, state)
    return network.unroll(window.observation, window.first, state)[0]


def _split(
  data: types.Sequence, burn_in_length: int
) -> tuple[types.Sequence, types.Sequence]:
  """Splits sequences into burn-in and loss window, `[T, B, ...]`."""
  data = data._replace(state=(), version=())
  return (
    tree.map_structure(lambda leaf: leaf[:burn_in_length], data),
    tree.map_structure(lambda leaf: leaf[burn_in_length:], data),
  )
