"""Builder and update of DQN."""

import dataclasses
import math
from typing import Any

import sonnet as snt
import tensorflow as tf
import tree

from repertory.agents.actor_critic import additional_loss as additional
from repertory.agents.actor_critic import exploration
from repertory.agents.dqn import config as dqn_config
from repertory.agents.dqn import networks, return_distributions
from repertory.agents.replay import experience_replay
from repertory.components import (
  adders,
  interfaces,
  learners,
  losses,
  policies,
  types,
)
from repertory.components.actions import action_masks, discrete_actions


class DQNBuilder(experience_replay.TransitionReplayBuilder):
  """DQN: double, dueling, n-step, with prioritized replay; up to Rainbow.

  Each part is an option, as are distributional returns, noisy networks and
  Munchausen rewards. All but the last form Rainbow,
  https://arxiv.org/abs/1710.02298.
  """

  config: dqn_config.DQNConfig
  takes_additional_loss = True

  def __init__(self, config: dqn_config.DQNConfig | None = None):
    super().__init__(config)
    config = self.config
    self.needs_demonstrations = config.margin_weight is not None
    # With clipped rewards, returns differ from those of the environment.
    if config.distribution == 'categorical' and not config.max_abs_reward:
      self.return_bounds = config.vmin, config.vmax

  @property
  def transitions(self) -> adders.Transitions:
    return dataclasses.replace(
      super().transitions, max_abs_reward=self.config.max_abs_reward
    )

  def make_network(self, spec):
    return networks.make_network(spec, self.config)

  def make_policy(self, network, acting) -> interfaces.Policy:
    settings = exploration.epsilon_settings(self.config, acting)
    values = networks.ActionValues(network, self.config)
    if not acting.evaluation:
      settings['noise_size'] = networks.noise_size(network, self.config)
    return policies.EpsilonGreedyPolicy(values, **settings)

  def make_update(self, network, spec):
    target = self.make_network(spec)
    actions = discrete_actions.DiscreteActions(spec.actions)
    update = DQNUpdate(
      network, target, self.config, actions, self.additional_loss
    )
    return experience_replay.in_series(update, self.config)


class DQNUpdate(experience_replay.ReplayUpdate):
  """Minimizes the n-step (double) Q-learning loss, Huber or distributional.

  A `return_distributions.ReturnDistribution` defines the representation of
  returns and the loss: by default, the Huber loss of Q-learning errors.
  Networks map observations `[B, ...]` to outputs `[B, A, ...]`: to values
  `[B, A]` without a distribution. `actions` maps actions to indices, if they
  are not indices.
  """

  def __init__(
    self,
    network: snt.Module,
    target_network: snt.Module,
    config: dqn_config.DQNConfig,
    actions: discrete_actions.DiscreteActions | None = None,
    additional_loss: additional.AdditionalLoss | None = None,
  ):
    super().__init__(network, config)
    self._network = network
    self._target_network = target_network
    self._to_number = actions.from_action if actions else lambda action: action
    self._additional_loss = additional_loss
    self._returns = networks.make_return_distribution(config)
    self._noise_size = networks.noise_size(network, config)
    # Only if noise is needed, because it has variables.
    draws = self._noise_size > 0 or config.distribution == 'implicit_quantile'
    self._noise: Any = learners.UpdateNoise() if draws else None
    self._optimizer = learners.ClippedAdam.from_config(network, config)
    self._update_target = learners.PeriodicCopy(
      network.variables, target_network.variables, config.target_update_period
    )

  def _improve(self, sample, weights):
    data = sample.data
    # tf.gather does not support small or unsigned integers.
    a_tm1 = tf.cast(self._to_number(data.action), tf.int32)  # [B]
    r_t, bootstrap = self._look_ahead(data, a_tm1)
    with tf.GradientTape() as tape:
      taus_tm1 = self._returns.sample_taus(self._noise, tf.shape(a_tm1)[0])
      outputs = self._outputs(self._network, data.observation, taus_tm1)
      items = self._returns.compare(
        tf.gather(outputs, a_tm1, batch_dims=1),  # [B, ...]
        taus_tm1,
        r_t,
        # The adder applied γ between the rewards; this is the last factor.
        self._config.discount * data.discount,
        bootstrap,
      )
      item_losses, more = items.losses, items.metrics
      if self._config.conservative_weight is not None:
        gaps = self._conservative_gaps(outputs, a_tm1)  # [B]
        item_losses += self._config.conservative_weight * gaps
        more = {**more, 'conservative_gap': tf.reduce_mean(gaps)}
      if self._config.margin_weight is not None:
        gaps = self._margin_gaps(outputs, a_tm1, sample)  # [B]
        item_losses += self._config.margin_weight * gaps
        more = {**more, 'margin_gap': tf.reduce_mean(gaps)}
      added, added_metrics = additional.evaluate(
        self._additional_loss, self._network, sample
      )
      loss = tf.reduce_mean(weights * item_losses) + added
    norm = self._optimizer.minimize(tape, loss)
    self._update_target()
    metrics = {
      'loss': loss,
      'td_error': tf.reduce_mean(tf.abs(items.errors)),
      'q_value': action_masks.mean_allowed(self._returns.values(outputs)),
      'gradient_norm': norm,
      **more,
    }
    return additional.merge(metrics, added_metrics), items.priorities

  def _conservative_gaps(
    self, outputs: tf.Tensor, a_tm1: tf.Tensor
  ) -> tf.Tensor:
    """Returns the CQL regularizer of each item, `[B]`."""
    q = self._returns.values(outputs)  # [B, A]
    # A sum over all discrete actions.
    log_prob = tf.fill(tf.shape(q), -math.log(q.shape[1]))
    return losses.conservative_q_loss(
      q, log_prob, tf.gather(q, a_tm1, batch_dims=1)
    )

  def _margin_gaps(
    self, outputs: tf.Tensor, a_tm1: tf.Tensor, sample: types.Sample
  ) -> tf.Tensor:
    """Returns the large-margin losses of demonstrations, 0 of others, `[B]`."""
    gaps = losses.large_margin_loss(
      self._returns.values(outputs), a_tm1, self._config.margin
    )
    if isinstance(sample.is_demonstration, tuple):
      return gaps  # Offline, all items are demonstrations.
    return tf.where(sample.is_demonstration, gaps, 0.0)

  def _look_ahead(
    self, data: types.Transition, a_tm1: tf.Tensor
  ) -> tuple[tf.Tensor, return_distributions.Bootstrap]:
    """Returns rewards `[B]` and the bootstrap of the next state."""
    config, returns = self._config, self._returns
    online, target = self._network, self._target_network
    taus = returns.target_taus(self._noise, tf.shape(a_tm1)[0])
    q_t, outputs_t = returns.read_target(
      self._outputs(target, data.next_observation, taus)
    )  # [B, A], [B, A, ...]
    if config.munchausen:
      bonus = losses.munchausen_bonus(
        self._values(target, data.observation),
        a_tm1,
        config.munchausen_alpha,
        config.munchausen_temperature,
        config.munchausen_clip,
      )  # [B]
      return data.reward + bonus, return_distributions.soft_bootstrap(
        outputs_t, q_t, config.munchausen_temperature
      )
    if config.double:
      q_t = self._values(online, data.next_observation)
    return data.reward, return_distributions.greedy_bootstrap(outputs_t, q_t)

  def _values(self, network: snt.Module, observation: types.Nest) -> tf.Tensor:
    """Returns the action values of the policy, `[B, A]`."""
    taus = self._returns.policy_taus(_num_rows(observation))
    return self._returns.values(self._outputs(network, observation, taus))

  def _outputs(
    self, network: snt.Module, observation: types.Nest, taus: tf.Tensor | None
  ) -> tf.Tensor:
    """Calls a network, with new noise if it is noisy.

    All rows share the noise: separate noise would multiply the cost.
    """
    noise = None
    if self._noise_size:
      drawn = self._noise.normals([1, self._noise_size])  # [1, K]
      noise = tf.repeat(drawn, _num_rows(observation), axis=0)  # [B, K]
    return networks.call(network, observation, taus, noise)


def _num_rows(observation: types.Nest) -> tf.Tensor:
  return tf.shape(tree.flatten(observation)[0])[0]
