"""What agents have in common that learn a policy from a critic's ratings."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import sonnet as snt
import tensorflow as tf

from repertory.components import (
  action_scaling,
  data_parallel,
  learners,
  losses,
  networks,
  specs,
  types,
)


class Networks(NamedTuple):
  """The networks of an agent, of which there are two: learned, and target ones.

  Attributes:
    policy: Maps observations `[B, ...]` to what an agent acts by, `[B, P]`.
    critic: A module that rates actions, by a value or more each; some have
      parts that an agent asks for.
  """

  policy: snt.Module
  critic: Any

  @property
  def variables(self) -> list[tf.Variable]:
    """Those of both."""
    return [*self.policy.variables, *self.critic.variables]


def make_critics(
  spec: specs.EnvironmentSpec, config: Any
) -> networks.CriticEnsemble:
  """Makes critics of actions in [−1, 1], with values `[B, num_critics]`.

  Args:
    spec: One with bounded arrays of floats for an action.
    config: Has `hidden_sizes`, `num_critics` and `image_torso`.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  return networks.make_critics(
    spec, config.hidden_sizes, config.num_critics, config.image_torso
  )


def make_critic(
  spec: specs.EnvironmentSpec, config: Any, num_outputs: int
) -> networks.Critic:
  """Makes one critic of actions in [−1, 1], with outputs `[B, num_outputs]`.

  Args:
    spec: One with bounded arrays of floats for an action.
    config: Has `hidden_sizes`, the first one normalized, and `image_torso`.
    num_outputs: Numbers of each action, such as logits of atoms.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  critic = networks.Critic(
    spec.observations,
    config.hidden_sizes,
    num_outputs,
    config.image_torso,
    body='layer_norm_mlp',
  )
  size = action_scaling.ActionScaling(spec.actions).size
  networks.create_critic_variables(critic, spec.observations, size)
  return critic


def make_optimizers(
  learned: Iterable[snt.Module], config: Any
) -> list[learners.ClippedAdam]:
  """Makes an optimizer for each network.

  Args:
    learned: The networks, such as `Networks`.
    config: Has `learning_rate`, `adam_epsilon` and `max_gradient_norm`, which
      is of each by itself.
  """
  return [
    learners.ClippedAdam(
      network.trainable_variables,
      config.learning_rate,
      config.adam_epsilon,
      config.max_gradient_norm,
    )
    for network in learned
  ]


def improve_critics(
  critics: networks.CriticEnsemble,
  optimizer: learners.ClippedAdam,
  observation: types.Nest,
  action: tf.Tensor,
  targets: tf.Tensor,
  weights: tf.Tensor,
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
  """Takes a step of all critics towards the same targets, by squared errors.

  Args:
    critics: What is learned, with values `[B, N]`.
    optimizer: That of the critics.
    observation: Nest of `[B, ...]`.
    action: What was done, in [−1, 1], `[B, D]`.
    targets: What it is worth, `[B]`; no gradient flows into them.
    weights: How much each item counts, `[B]`.

  Returns:
    Metrics, and the mean sizes of the errors of each item, `[B]`.
  """
  with tf.GradientTape() as tape:
    q = data_parallel.by_rows(critics)(observation, action)  # [B, N]
    errors = targets[:, None] - q  # [B, N]
    loss = tf.reduce_mean(weights * tf.reduce_sum(errors**2, axis=-1))
  norm = optimizer.minimize(tape, loss)
  sizes = tf.reduce_mean(tf.abs(errors), axis=-1)  # [B]
  metrics = {
    'critic_loss': loss,
    'td_error': tf.reduce_mean(sizes),
    'q_value': tf.reduce_mean(q),
    'critic_gradient_norm': norm,
  }
  return metrics, sizes


def make_support(config: Any) -> tf.Tensor:
  """Makes the atoms of a critic that tells distributions, `[N]`.

  Args:
    config: Has `vmin`, `vmax` and `num_atoms`.
  """
  return tf.linspace(float(config.vmin), float(config.vmax), config.num_atoms)


class CategoricalCritic:
  """Learns to tell distributions of returns, by logits of N atoms.

  See https://arxiv.org/abs/1707.06887. An update keeps the networks and the
  optimizer as well: what it saves are its own attributes' variables.
  """

  def __init__(
    self,
    online: networks.Critic,
    target: networks.Critic,
    optimizer: learners.ClippedAdam,
    config: Any,
  ):
    """Takes over the networks.

    Args:
      online: What is learned, with logits `[B, N]`.
      target: A critic of the same kind, made to follow.
      optimizer: That of what is learned.
      config: Has `discount`, and what `make_support` reads.
    """
    self._online = online
    self._target = target
    self._optimizer = optimizer
    self._discount = config.discount
    self._support = make_support(config)  # [N]

  def values(self, observation: types.Nest, action: tf.Tensor) -> tf.Tensor:
    """Returns the means of the distributions, `[...]`, as they are learned.

    Args:
      observation: Nest of `[B, ...]`.
      action: In [−1, 1], `[..., D]`.
    """
    logits = data_parallel.by_rows(self._online)(observation, action)
    return losses.categorical_mean(logits, self._support)

  def improve(
    self,
    data: types.Transition,
    action: tf.Tensor,
    action_t: tf.Tensor,
    weights: tf.Tensor,
  ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Takes a step towards what came of actions.

    Args:
      data: The items.
      action: What was done, in [−1, 1], `[B, D]`.
      action_t: What would be done next, `[B, D]`.
      weights: How much each item counts, `[B]`.

    Returns:
      Metrics, and how far what was said is from the targets, `[B]`, in nats.
    """
    target = data_parallel.by_rows(self._target)
    targets = losses.categorical_td_targets(
      r_t=data.reward,
      # The adder applied γ between the rewards; this is the last factor.
      discount_t=self._discount * data.discount,
      logits_t=target(data.next_observation, action_t),
      z=self._support,
    )  # [B, N]
    with tf.GradientTape() as tape:
      online = data_parallel.by_rows(self._online)
      logits = online(data.observation, action)  # [B, N]
      divergences = losses.categorical_divergence(targets, logits)  # [B]
      loss = tf.reduce_mean(weights * divergences)
    norm = self._optimizer.minimize(tape, loss)
    q = losses.categorical_mean(logits, self._support)  # [B]
    # What the ends of the support hold is a sign that it is too narrow.
    ends = targets[:, 0] + targets[:, -1]  # [B]
    metrics = {
      'critic_loss': loss,
      'q_value': tf.reduce_mean(q),
      'share_at_ends': tf.reduce_mean(ends),
      'critic_gradient_norm': norm,
    }
    return metrics, divergences
