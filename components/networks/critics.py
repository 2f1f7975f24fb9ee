"""Networks that rate actions."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

from repertory.components import action_scaling, specs, types
from repertory.components.networks import bodies, initialization, torsos


class Critic(snt.Module):
  """Maps an observation and an action to numbers: values, or logits of them.

  The observation goes through the parts of `ObservationTorso` without hidden
  layers, the action is joined, and hidden layers follow.
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
    """Makes the layers; their variables come with the first call.

    Args:
      observation_spec: Nest of array specs, without a batch axis.
      hidden_sizes: Layers.
      num_outputs: N.
      image_torso: What reads image leaves, one of `IMAGE_TORSOS` or 'auto'.
      body: What the layers are, one of `BODIES`.
    """
    super().__init__(name=name)
    self._torso = torsos.ObservationTorso(observation_spec, (), image_torso)
    self._body = bodies.make_body(body, hidden_sizes)
    self._head = snt.Linear(num_outputs, name='head')

  def __call__(
    self,
    observation: types.Nest,
    action: tf.Tensor,
    mask: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Rates actions.

    Args:
      observation: Nest of `[B, ...]`.
      action: `[B, D]`, or `[B, K, D]` with K for each observation, which are
        read once for all of them.
      mask: One that a `NormalizedMLP` takes, `[B, S]` or `[B, K, S]`.

    Returns:
      `[B, N]` or `[B, K, N]`.
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
  """Critics that rate the same actions, each on its own.

  The least of two values is too high less often than either:
  https://arxiv.org/abs/1802.09477, section 4.2.
  """

  def __init__(self, critics: Sequence[Critic], name: str = 'critic_ensemble'):
    """Takes the critics.

    Args:
      critics: Modules with as many outputs, K.
    """
    super().__init__(name=name)
    self._critics = list(critics)

  @property
  def first(self) -> Critic:
    """One of them, for who follows one alone."""
    return self._critics[0]

  def __call__(
    self,
    observation: types.Nest,
    action: tf.Tensor,
    masks: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Rates actions.

    Args:
      observation: Nest of `[B, ...]`.
      action: `[B, D]`, or `[B, P, D]` with P for each observation.
      masks: Those of the N critics' hidden layers, `[B, N, S]` or `[B, P, N,
        S]`.

    Returns:
      Outputs of all critics, one after the other, `[B, N K]` or `[B, P, N K]`.
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
  """Makes critics of actions in [−1, 1], with all their variables.

  Args:
    spec: One with a bounded array of floats for an action.
    hidden_sizes: Layers of each.
    num_critics: N.
    image_torso: What reads image leaves, one of `IMAGE_TORSOS` or 'auto'.
    body: What the layers are, one of `BODIES`.
    num_outputs: K, of each.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  critics = CriticEnsemble(
    [
      Critic(
        spec.observations,
        hidden_sizes,
        num_outputs,
        image_torso,
        body,
        name=f'critic_{i}',
      )
      for i in range(num_critics)
    ]
  )
  size = action_scaling.ActionScaling(spec.actions).size
  initialization.create_critic_variables(critics, spec.observations, size)
  return critics
