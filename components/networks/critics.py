"""Critic networks, Q(s, a)."""

from collections.abc import Sequence
from typing import Any

import sonnet as snt
import tensorflow as tf

from repertory.components import specs, types
from repertory.components.actions import action_scaling
from repertory.components.networks import torsos, trunks


class Critic(snt.Module):
  """Critic of observations and actions, with values or logits as outputs.

  The observation is embedded by `ObservationTorso` without hidden layers, then
  concatenated with the action and passed through the hidden layers.
  """

  def __init__(
    self,
    observation_spec: types.Nest,
    hidden_sizes: Sequence[int],
    num_outputs: int,
    image_torso: str = 'nature',
    body: str = 'mlp',
    name: str = 'critic',
  ):
    """Creates the layers; the first call creates their variables.

    The arguments are those of `make_critic`, with a nest of array specs of
    observations, without a batch axis.
    """
    super().__init__(name=name)
    self._torso = torsos.ObservationTorso(observation_spec, (), image_torso)
    self._body = trunks.make_trunk(body, hidden_sizes)
    self._head = snt.Linear(num_outputs, name='head')

  def __call__(
    self,
    observation: types.Nest,
    action: tf.Tensor,
    mask: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Evaluates actions; returns `[B, N]` or `[B, K, N]`.

    Args:
      observation: Nest of `[B, ...]`.
      action: `[B, D]`, or `[B, K, D]` with K actions for each observation,
        which is embedded once.
      mask: Dropout mask of a `NormalizedMLP`, `[B, S]` or `[B, K, S]`.
    """
    features = self._torso(observation)  # [B, F]
    *between, size = action.shape[1:]
    if between:
      features = tf.repeat(features, between[0], axis=0)  # [B · K, F]
    inputs = tf.concat([features, tf.reshape(action, [-1, size])], axis=-1)
    masks = []
    if mask is not None:
      masks.append(tf.reshape(mask, [-1, mask.shape[-1]]))
    outputs = self._head(self._body(inputs, *masks))  # [B · K, N]
    return tf.reshape(outputs, [-1, *between, outputs.shape[-1]])


class CriticEnsemble(snt.Module):
  """Ensemble of independent critics, as in TD3 and SAC."""

  def __init__(self, critics: Sequence[Critic]):
    """Takes modules with K outputs each."""
    super().__init__(name='critic_ensemble')
    self._critics = list(critics)

  @property
  def first(self) -> Critic:
    """The first critic, for agents that optimize the policy by one critic."""
    return self._critics[0]

  def __call__(
    self,
    observation: types.Nest,
    action: tf.Tensor,
    masks: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Evaluates actions.

    Args:
      observation: Nest of `[B, ...]`.
      action: `[B, D]`, or `[B, P, D]` with P actions for each observation.
      masks: Dropout masks of the N critics' hidden layers, `[B, N, S]` or
        `[B, P, N, S]`.

    Returns:
      Concatenated outputs of all critics, `[B, N K]` or `[B, P, N K]`.
    """
    inputs = [()] * len(self._critics)
    if masks is not None:
      inputs = [(mask,) for mask in tf.unstack(masks, axis=-2)]
    outputs = [
      critic(observation, action, *mask)
      for critic, mask in zip(self._critics, inputs)
    ]
    return tf.concat(outputs, axis=-1)


def make_critics(
  spec: specs.EnvironmentSpec,
  hidden_sizes: Sequence[int],
  num_critics: int = 2,
  image_torso: str = 'auto',
  body: str = 'mlp',
  num_outputs: int = 1,
) -> CriticEnsemble:
  """Creates an ensemble of critics; for arguments see `make_critic`."""
  settings = (spec.observations, hidden_sizes, num_outputs, image_torso, body)
  critics = CriticEnsemble(
    [Critic(*settings, name=f'critic_{i}') for i in range(num_critics)]
  )
  return _with_variables(critics, spec)


def make_critic(
  spec: specs.EnvironmentSpec,
  hidden_sizes: Sequence[int],
  num_outputs: int = 1,
  image_torso: str = 'auto',
  body: str = 'mlp',
) -> Critic:
  """Creates a critic of actions in [−1, 1], with its variables.

  Args:
    spec: Environment spec with bounded continuous actions.
    hidden_sizes: Sizes of the hidden layers.
    num_outputs: N, outputs for each action, such as logits of atoms.
    image_torso: Torso for images, one of `IMAGE_TORSOS` or 'auto'.
    body: Kind of the hidden layers, one of `BODIES`.

  Raises:
    ValueError: If observations or actions are unsupported.
  """
  critic = Critic(
    spec.observations, hidden_sizes, num_outputs, image_torso, body
  )
  return _with_variables(critic, spec)


def _with_variables(critic: Any, spec: specs.EnvironmentSpec) -> Any:
  size = action_scaling.ActionScaling(spec.actions).size
  torsos.create_critic_variables(critic, spec.observations, size)
  return critic
