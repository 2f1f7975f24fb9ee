"""Networks that rate actions."""

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf

from repertory.components import action_scaling, specs, types
from repertory.components.networks import (
  initialization,
  layer_norm_mlp,
  torsos,
)


class Critic(snt.Module):
  """Maps an observation and an action to numbers: values, or logits of them.

  The observation goes through the parts of `ObservationTorso` without hidden
  layers, the action is joined, and an MLP follows.
  """

  def __init__(
    self,
    observation_spec: types.Nest,
    hidden_sizes: Sequence[int],
    num_outputs: int,
    image_torso: str = 'nature',
    *,
    layer_norm: bool = False,
    name: str = 'critic',
  ):
    """Makes the layers; their variables come with the first call.

    Args:
      observation_spec: Nest of array specs, without a batch axis.
      hidden_sizes: Layers; of a `LayerNormMLP`, at least one.
      num_outputs: N.
      image_torso: What reads image leaves, one of `IMAGE_TORSOS` or 'auto'.
      layer_norm: Whether they are a `LayerNormMLP`; else a ReLU follows each.
    """
    super().__init__(name=name)
    self._torso = torsos.ObservationTorso(observation_spec, (), image_torso)
    if layer_norm:
      self._body = layer_norm_mlp.LayerNormMLP(hidden_sizes)
    else:
      self._body = snt.nets.MLP(hidden_sizes, activate_final=True)
    self._head = snt.Linear(num_outputs, name='head')

  def __call__(self, observation: types.Nest, action: tf.Tensor) -> tf.Tensor:
    """Maps observations `[B, ...]` and actions `[B, D]` to `[B, N]`."""
    inputs = tf.concat([self._torso(observation), action], axis=-1)  # [B, F]
    return self._head(self._body(inputs))  # [B, N]


class CriticEnsemble(snt.Module):
  """Critics that rate the same actions, each on its own.

  The least of two values is too high less often than either:
  https://arxiv.org/abs/1802.09477, section 4.2.
  """

  def __init__(self, critics: Sequence[Critic], name: str = 'critic_ensemble'):
    """Takes the critics.

    Args:
      critics: Modules with one output each.
    """
    super().__init__(name=name)
    self._critics = list(critics)

  def __call__(self, observation: types.Nest, action: tf.Tensor) -> tf.Tensor:
    """Maps observations `[B, ...]` and actions `[B, D]` to values `[B, N]`."""
    values = [critic(observation, action) for critic in self._critics]
    return tf.concat(values, axis=-1)  # [B, N]


def make_critics(
  spec: specs.EnvironmentSpec,
  hidden_sizes: Sequence[int],
  num_critics: int = 2,
  image_torso: str = 'auto',
) -> CriticEnsemble:
  """Makes critics of actions in [−1, 1], with all their variables.

  Args:
    spec: One with a bounded array of floats for an action.
    hidden_sizes: Layers of each.
    num_critics: N.
    image_torso: What reads image leaves, one of `IMAGE_TORSOS` or 'auto'.

  Raises:
    ValueError: If observations or actions are of another kind.
  """
  critics = CriticEnsemble(
    [
      Critic(
        spec.observations,
        hidden_sizes,
        num_outputs=1,
        image_torso=image_torso,
        name=f'critic_{i}',
      )
      for i in range(num_critics)
    ]
  )
  size = action_scaling.ActionScaling(spec.actions).size
  initialization.create_critic_variables(critics, spec.observations, size)
  return critics
