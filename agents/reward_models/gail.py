"""GAIL and DAC: rewards of a discriminator for imitation."""

from collections.abc import Callable

import tensorflow as tf
import tree

from repertory.agents.reward_models import (
  reward_model_builder,
  reward_model_config,
  rewarding,
)
from repertory.components import learners, losses, networks, specs, types
from repertory.components.actions import (
  action_parts,
  action_scaling,
  discrete_actions,
)
from repertory.components.transports import experience as experience_lib

GAILConfig = reward_model_config.GAILConfig


def make_encoder(
  action_spec: types.Nest,
) -> tuple[int, Callable[[types.Nest], tf.Tensor]]:
  """Makes the encoder of actions as vectors: one-hot, or scaled to [−1, 1].

  Returns:
    The size D of a vector, and a function that maps actions of the spec,
    `[N, ...]`, to float32 `[N, D]`.

  Raises:
    ValueError: If actions are neither discrete nor bounded floats.
  """
  parts = action_parts.parts_of(action_spec)
  if not action_parts.is_discrete(parts[0].spec):
    scaling = action_scaling.ActionScaling(action_spec)
    return scaling.size, scaling.from_action
  actions = discrete_actions.DiscreteActions(action_spec)
  size = actions.num_actions
  return size, lambda action: tf.one_hot(actions.from_action(action), size)


class GAILRewards(rewarding.Rewards):
  """GAIL rewards of a discriminator, which is trained on each batch.

  Its inputs are normalized observations, and actions of `make_encoder`.
  """

  def __init__(self, spec: specs.EnvironmentSpec, config: GAILConfig):
    """Creates the discriminator."""
    super().__init__()
    self._config = config
    action_size, self._encode = make_encoder(spec.actions)
    self._normalizer = networks.ObservationNormalizer(
      spec.observations, with_images=True
    )
    self._discriminator = networks.Critic(
      spec.observations,
      config.hidden_sizes,
      num_outputs=1,
      image_torso=config.image_torso,
      name='discriminator',
    )
    networks.create_critic_variables(
      self._discriminator, spec.observations, action_size
    )
    self._optimizer = learners.ClippedAdam(
      self._discriminator.trainable_variables, config.learning_rate
    )
    # For the interpolations of the gradient penalty.
    self._noise = learners.UpdateNoise()

  def __call__(self, steps: rewarding.StepBatch):
    is_demonstration, mask = steps.is_demonstration, steps.mask
    self._normalizer.update(
      tree.map_structure(lambda x: x[:, None], steps.observation), mask[:, None]
    )
    observation = self._normalizer(steps.observation)
    action = self._encode(steps.action)  # [N, D]
    between, counts = self._points_between(
      (observation, action), is_demonstration, mask
    )
    with tf.GradientTape() as tape:
      logits = self._logits(observation, action)  # [N]
      loss = losses.discriminator_loss(logits, is_demonstration, mask)
      penalty = losses.gradient_penalty(self._gradients_at(between), counts)
      total = loss + self._config.gradient_penalty_coefficient * penalty
    norm = self._optimizer.minimize(tape, total)
    rewards = losses.imitation_rewards(logits, self._config.reward)
    is_right = tf.equal(logits > 0, is_demonstration)
    return rewards, {
      'imitation_reward': losses.masked_mean(rewards, mask & ~is_demonstration),
      'demonstration_reward': losses.masked_mean(
        rewards, mask & is_demonstration
      ),
      'discriminator_loss': loss,
      'discriminator_accuracy': losses.masked_mean(
        tf.cast(is_right, tf.float32), mask
      ),
      'gradient_penalty': penalty,
      'discriminator_gradient_norm': norm,
    }

  def _logits(self, observation: types.Nest, action: tf.Tensor) -> tf.Tensor:
    return tf.squeeze(self._discriminator(observation, action), axis=-1)

  def _points_between(
    self,
    inputs: types.Nest,
    is_demonstration: tf.Tensor,
    mask: tf.Tensor,
  ) -> tuple[types.Nest, tf.Tensor]:
    """Samples N random interpolations of policy steps and demonstrations.

    Integer leaves are those of the demonstrations. Returns inputs of the same
    structure, and their mask, bool `[N]`.
    """
    own, data = mask & ~is_demonstration, mask & is_demonstration
    own_indices, data_indices = _cycle(own), _cycle(data)
    ratios = tf.random.stateless_uniform([mask.shape[0]], self._noise.seed())

    def between(leaf):
      one, other = tf.gather(leaf, own_indices), tf.gather(leaf, data_indices)
      if not leaf.dtype.is_floating:
        return other
      ratio = tf.reshape(ratios, [-1, *[1] * (len(leaf.shape) - 1)])
      return one + tf.cast(ratio, leaf.dtype) * (other - one)

    counts = tf.reduce_any(own) & tf.reduce_any(data)
    return tree.map_structure(between, inputs), tf.fill(mask.shape, counts)

  def _gradients_at(self, inputs: types.Nest) -> tf.Tensor:
    """Returns the gradients of the logits by all float inputs, `[N, F]`."""
    floats = [x for x in tree.flatten(inputs) if x.dtype.is_floating]
    with tf.GradientTape() as tape:
      tape.watch(floats)
      logits = self._logits(*inputs)
    gradients = tape.gradient(
      logits, floats, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    size = logits.shape[0]
    return tf.concat([tf.reshape(g, [size, -1]) for g in gradients], axis=-1)


def _cycle(mask: tf.Tensor) -> tf.Tensor:
  """Returns indices of masked steps, repeated cyclically, int32 `[N]`."""
  order = tf.argsort(tf.where(mask, 0, 1), stable=True)  # Masked steps first.
  number = tf.maximum(tf.reduce_sum(tf.cast(mask, tf.int32)), 1)
  return tf.gather(order, tf.range(mask.shape[0]) % number)


class GAILBuilder(reward_model_builder.RewardModelBuilder):
  """GAIL: imitation learning by rewards of a discriminator.

  See https://arxiv.org/abs/1606.03476; with an agent with replay it is DAC,
  https://arxiv.org/abs/1809.02925, without absorbing states.
  """

  name = 'gail'
  imitates = True
  config_class = GAILConfig
  rewards_class = GAILRewards

  def experience(self, spec, num_environments) -> experience_lib.Experience:
    make_encoder(spec.actions)  # Checks the actions.
    return super().experience(spec, num_environments)
