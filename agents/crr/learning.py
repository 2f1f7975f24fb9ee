"""Builder and update of CRR."""

import tensorflow as tf

from repertory.agents.actor_critic import exploration, policy_and_critic
from repertory.agents.crr import config as crr_config
from repertory.components import (
  distributions,
  interfaces,
  learners,
  losses,
  networks,
  types,
)


class CRRUpdate(policy_and_critic.CategoricalCriticUpdate):
  """CRR: advantage-weighted behavior cloning, and categorical TD learning.

  See https://arxiv.org/abs/2006.15134, algorithm 1. The critic takes actions
  scaled to [−1, 1]. The policy has parameters of a `BoundedGaussian`, `[B, P]`.
  """

  def __init__(self, online, target, actions, config):
    super().__init__(online, target, actions, config)
    self._distribution = distributions.BoundedGaussian(actions.size)
    self._noise = learners.UpdateNoise()

  def _improve(self, sample, weights):
    data = sample.data
    action = self._actions.from_action(data.action)  # [B, D]
    batch_size = tf.shape(action)[0]
    # For one action of the next state, and m actions of the first state.
    noise = self._noise.normals(
      [1 + self._config.num_action_samples, batch_size, self._actions.size]
    )  # [1 + m, B, D]
    # The policy first, by the critic before this step.
    policy_metrics = self._improve_policy(data.observation, action, noise[1:])
    action_t = self._distribution.sample(
      self._target_policy(data.next_observation), noise[0]
    )  # [B, D]
    critic_metrics, divergences = self._improve_critic(
      data, action, action_t, weights
    )
    self._update_target()
    return {**critic_metrics, **policy_metrics}, divergences

  def _improve_policy(
    self, observation: types.Nest, action: tf.Tensor, noise: tf.Tensor
  ) -> dict[str, tf.Tensor]:
    with tf.GradientTape() as tape:
      parameters = self._policy(observation)  # [B, P]
      log_prob = self._distribution.log_prob(parameters, action)  # [B]
      with tape.stop_recording():
        advantages = self._advantages(observation, action, parameters, noise)
        weights = self._weigh(advantages)  # [B]
      loss = losses.weighted_cloning_loss(log_prob, weights)
    norm = self._policy_optimizer.minimize(tape, loss)
    return {
      'policy_loss': loss,
      'advantage': tf.reduce_mean(advantages),
      'weight': tf.reduce_mean(weights),
      'policy_gradient_norm': norm,
    }

  def _advantages(
    self,
    observation: types.Nest,
    action: tf.Tensor,
    parameters: tf.Tensor,
    noise: tf.Tensor,
  ) -> tf.Tensor:
    """Returns advantages `[B]` over m actions of noise `[m, B, D]`."""
    drawn = self._distribution.sample(parameters, noise)  # [m, B, D]
    # The data set's actions and the sampled ones, in one call.
    actions = tf.stack([action, *tf.unstack(drawn)], axis=1)  # [B, 1 + m, D]
    values = self._values(observation, actions)  # [B, 1 + m]
    q, others = values[:, 0], values[:, 1:]
    if self._config.advantage_baseline == 'max':
      return q - tf.reduce_max(others, axis=-1)
    return q - tf.reduce_mean(others, axis=-1)

  def _weigh(self, advantages: tf.Tensor) -> tf.Tensor:
    """Returns the weights of cloned actions, `[B]`."""
    config = self._config
    if config.advantage_weights == 'binary':
      return losses.binary_weights(advantages)
    return losses.exponential_weights(
      advantages, 1 / config.advantage_temperature, config.max_weight
    )


class CRRBuilder(policy_and_critic.CategoricalCriticBuilder):
  """Critic-regularized regression (CRR).

  See https://arxiv.org/abs/2006.15134. The builder's network is the policy.
  """

  config: crr_config.CRRConfig
  update_class = CRRUpdate

  def make_network(self, spec):
    return networks.make_bounded_gaussian_network(
      spec, self.config.hidden_sizes, self.config.image_torso
    )

  def make_policy(self, network, acting) -> interfaces.Policy:
    return exploration.make_bounded_gaussian_policy(network, acting)
