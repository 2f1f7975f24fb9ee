"""Update of SAC for discrete actions."""

import math
from typing import Any, NamedTuple

import sonnet as snt
import tensorflow as tf

from repertory.agents.actor_critic import additional_loss as additional
from repertory.agents.actor_critic import policy_and_critic
from repertory.agents.replay import experience_replay
from repertory.agents.sac import config as sac_config
from repertory.agents.sac import critic_learning, learning
from repertory.components import interfaces, learners, losses, networks, types
from repertory.components.actions import discrete_actions
from repertory.components.runtime import data_parallel

# Target entropy, relative to that of a uniform policy.
_TARGET_SHARE = 0.98


class Policies(NamedTuple):
  """Discrete policies in a batch of states.

  Attributes:
    probabilities: π, `[B, A]`.
    log_prob: Σ_a π log π, the negative entropy, `[B]`.
  """

  probabilities: tf.Tensor
  log_prob: tf.Tensor

  def mean(self, q: tf.Tensor) -> tf.Tensor:
    """Returns Σ_a π q, `[B]`, of values `[B, A]`."""
    return tf.reduce_sum(self.probabilities * q, axis=-1)


class DiscreteSACUpdate(interfaces.Update):
  """SAC for discrete actions: updates critics, policy and temperature.

  Expectations over the policy are sums over all actions instead of samples:
  https://arxiv.org/abs/1910.07207, section 3. The policy has logits `[B, A]`,
  the critics values `[B, A, N]`.
  """

  def __init__(
    self,
    policy_network: snt.Module,
    critics: snt.Module,
    target_critics: snt.Module,
    actions: discrete_actions.DiscreteActions,
    config: sac_config.SACConfig,
    additional_loss: additional.AdditionalLoss | None = None,
  ):
    super().__init__(policy_network)
    self._policy_network = policy_network
    self._critics = critics
    self._target_critics = target_critics
    self._actions = actions
    self._config = config
    self._additional_loss = additional_loss
    target_entropy = config.target_entropy
    if target_entropy is None:
      target_entropy = _TARGET_SHARE * math.log(actions.num_actions)
    self._temperature = learning.Temperature(config, target_entropy)
    self._policy_optimizer, self._critic_optimizer = (
      learners.ClippedAdam.from_config(
        network, config, learning_rate, first_decay=config.adam_first_decay
      )
      for network, learning_rate in (
        (policy_network, config.policy_learning_rate or config.learning_rate),
        (critics, config.learning_rate),
      )
    )
    self._importance_weights = experience_replay.ImportanceWeights(config)
    self._noise = learners.UpdateNoise()
    self._values = critic_learning.Values(config, self._noise)
    rate: Any = config.target_update_rate
    self._update_target = learners.SoftUpdate(
      critics.variables, target_critics.variables, rate
    )
    self._improve_policy_in_turn = learning.in_turn(
      self._improve_policy, config
    )

  @property
  def learned(self):
    statistics = critic_learning.statistics(self._critics, self._target_critics)
    return {**super().learned, 'statistics': statistics}

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    weights = self._importance_weights(sample)  # [B]
    critic_metrics, sizes = self._improve_critics(sample, weights)
    policy_metrics = self._improve_policy_in_turn(sample)
    self._update_target()
    return interfaces.UpdateResult(
      additional.merge(critic_metrics, policy_metrics),
      priorities=sizes if self._config.prioritized else None,
    )

  def _improve_critics(
    self, sample: types.Sample, weights: tf.Tensor
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    data = sample.data
    target_critics = data_parallel.split_rows(self._target_critics)
    policy = self._act(data.next_observation)
    q_t = self._values.of_target(target_critics(data.next_observation))
    targets = losses.soft_q_targets(
      r_t=data.reward,
      # The adder applied γ between the rewards; this is the last factor.
      discount_t=self._config.discount * data.discount,
      q_t=policy.mean(q_t[..., 0])[:, None],
      log_prob_t=policy.log_prob,
      temperature=self._temperature(),
    )  # [B, 1]
    a_tm1 = self._actions.from_action(data.action)  # [B]
    critics = data_parallel.split_rows(self._critics)
    with tf.GradientTape() as tape, networks.batch_statistics():
      q_tm1 = critics(data.observation)  # [B, A, N]
      errors = self._values.errors(
        tf.gather(q_tm1, a_tm1, batch_dims=1), targets
      )
      loss = tf.reduce_mean(weights * errors.losses)
      added, added_metrics = self._evaluate_additional(sample)
      total = loss + added
    norm = self._critic_optimizer.minimize(tape, total)
    metrics = {
      'critic_loss': loss,
      'td_error': tf.reduce_mean(errors.sizes),
      'q_value': tf.reduce_mean(q_tm1),
      'critic_gradient_norm': norm,
    }
    return additional.merge(metrics, added_metrics), errors.sizes

  def _evaluate_additional(
    self, sample: types.Sample
  ) -> tuple[tf.Tensor | float, dict[str, tf.Tensor]]:
    both = policy_and_critic.Networks(self._policy_network, self._critics)
    return additional.evaluate(self._additional_loss, both, sample)

  def _act(self, observation: types.Nest) -> Policies:
    policy = data_parallel.split_rows(self._policy_network)
    log_probs = tf.nn.log_softmax(policy(observation))  # [B, A]
    probabilities = tf.exp(log_probs)
    return Policies(
      probabilities, tf.reduce_sum(probabilities * log_probs, axis=-1)
    )

  def _improve_policy(self, sample: types.Sample) -> dict[str, tf.Tensor]:
    """Updates policy and temperature."""
    observation, alpha = sample.data.observation, self._temperature()
    critics = data_parallel.split_rows(self._critics)
    q = self._values.of_policy(critics(observation))  # [B, A]
    with tf.GradientTape() as tape, networks.batch_statistics():
      policy = self._act(observation)
      loss = losses.soft_policy_loss(policy.mean(q), policy.log_prob, alpha)
      # Its metrics are logged by the critics' step.
      added, _ = self._evaluate_additional(sample)
      total = loss + added
    norm = self._policy_optimizer.minimize(tape, total)
    self._temperature.improve(policy.log_prob)
    return {
      'policy_loss': loss,
      'entropy': -tf.reduce_mean(policy.log_prob),
      'temperature': alpha,
      'policy_gradient_norm': norm,
    }
