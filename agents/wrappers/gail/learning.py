"""The rewards of GAIL."""

from collections.abc import Callable

import tensorflow as tf
import tree

from repertory.agents.wrappers import rewarding
from repertory.agents.wrappers import steps as steps_lib
from repertory.agents.wrappers.gail import config as gail_config
from repertory.components import (
  action_parts,
  action_scaling,
  discrete_actions,
  learners,
  losses,
  networks,
  specs,
  types,
)


class ActionEncoder:
  """Maps actions to vectors: one-hot, or scaled to [−1, 1].

  Attributes:
    size: D, numbers of a vector.
  """

  def __init__(self, action_spec: types.Nest):
    """Reads what there is to choose from off the spec.

    Raises:
      ValueError: If actions are neither discrete nor floats within bounds.
    """
    parts = action_parts.parts_of(action_spec)
    self._read: Callable[[types.Nest], tf.Tensor]
    if action_parts.is_discrete(parts[0].spec):
      actions = discrete_actions.DiscreteActions(action_spec)
      self.size = size = actions.num_actions
      self._read = lambda action: tf.one_hot(actions.from_action(action), size)
    else:
      scaling = action_scaling.ActionScaling(action_spec)
      self.size, self._read = scaling.size, scaling.from_action

  def __call__(self, action: types.Nest) -> tf.Tensor:
    """Maps actions of the spec, `[N, ...]`, to float32 `[N, D]`."""
    return self._read(action)


class GAILRewards(rewarding.Rewards):
  """Rewards what looks like a demonstration to a discriminator, and trains it.

  It sees normalized observations, and actions as `ActionEncoder` has them.
  """

  def __init__(
    self, spec: specs.EnvironmentSpec, config: gail_config.GAILConfig
  ):
    """Makes the discriminator.

    Args:
      spec: What the environment takes and gives.
      config: The settings.
    """
    super().__init__()
    self._config = config
    self._encode = ActionEncoder(spec.actions)
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
      self._discriminator, spec.observations, self._encode.size
    )
    self._optimizer = learners.ClippedAdam(
      self._discriminator.trainable_variables, config.learning_rate
    )
    # Where between two steps the gradient is looked at.
    self._noise = learners.UpdateNoise()

  def __call__(self, steps: steps_lib.Steps):
    is_demonstration = steps_lib.demonstrations_of(steps)
    mask = steps.mask
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
    """Draws points on the lines from one's own steps to demonstrations.

    There are as many as steps, whatever is how often of which kind, so that
    shapes are known. Leaves of integers are those of the demonstrations.

    Args:
      inputs: Observations and actions, `[N, ...]`.
      is_demonstration: Bool `[N]`.
      mask: Bool `[N]`.

    Returns:
      Inputs of the same form, and which of them count, bool `[N]`.
    """
    own, data = mask & ~is_demonstration, mask & is_demonstration
    place = tf.range(mask.shape[0])
    of_own, of_data = (_cycle(place, which) for which in (own, data))
    share = tf.random.stateless_uniform([mask.shape[0]], self._noise.seed())

    def between(leaf):
      one, other = tf.gather(leaf, of_own), tf.gather(leaf, of_data)
      if not leaf.dtype.is_floating:
        return other
      ratio = tf.reshape(share, [-1, *[1] * (len(leaf.shape) - 1)])
      return one + tf.cast(ratio, leaf.dtype) * (other - one)

    counts = tf.reduce_any(own) & tf.reduce_any(data)
    return tree.map_structure(between, inputs), tf.fill(mask.shape, counts)

  def _gradients_at(self, inputs: types.Nest) -> tf.Tensor:
    """Returns the gradients of the logits by all floats, `[N, F]`."""
    floats = [x for x in tree.flatten(inputs) if x.dtype.is_floating]
    with tf.GradientTape() as tape:
      tape.watch(floats)
      logits = self._logits(*inputs)
    gradients = tape.gradient(
      logits, floats, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    size = logits.shape[0]
    return tf.concat([tf.reshape(g, [size, -1]) for g in gradients], axis=-1)


def _cycle(place: tf.Tensor, which: tf.Tensor) -> tf.Tensor:
  """Returns the indices of those that count, over and over, int32 `[N]`."""
  order = tf.argsort(tf.where(which, 0, 1), stable=True)  # They come first.
  number = tf.maximum(tf.reduce_sum(tf.cast(which, tf.int32)), 1)
  return tf.gather(order, place % number)
