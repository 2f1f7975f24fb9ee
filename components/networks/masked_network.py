"""Networks that mask the outputs of actions an observation does not allow."""

from collections.abc import Callable
from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf

from repertory.components import types
from repertory.components.actions import action_masks
from repertory.components.networks import heads
from repertory.components.runtime import numpy_functions


class MaskedNetwork(snt.Module):
  """Network whose outputs of masked actions are `action_masks.MASKED`.

  It has the attributes of the network that it masks.
  """

  def __init__(
    self, network: Callable[..., types.Nest], masks: action_masks.ActionMasks
  ):
    """Takes a network from observations `[B, ...]` to outputs `[B, P, ...]`.

    A `DuelingHead` at the end of a `snt.Sequential` also gets the masks.
    """
    super().__init__(name='masked_network')
    self._network: Any = network
    self.masks = masks

  def __call__(self, observation: types.Nest, *args: Any, **kwargs: Any) -> Any:
    mask = self.masks(observation)  # [B, P]
    if type(self._network) is snt.Sequential:
      *layers, head = self._network._layers
      features = snt.Sequential(layers)(observation, *args, **kwargs)
      return apply_head(head, features, mask)
    return _mask_outputs(self._network(observation, *args, **kwargs), mask)

  def in_numpy(self, weights: numpy_functions.Weights) -> Callable:
    """Returns the NumPy version, see `numpy_functions`."""
    if type(self._network) is not snt.Sequential:
      raise numpy_functions.NoNumpyError('the network is not sequential.')
    *layers, head = self._network._layers
    return masked_in_numpy(snt.Sequential(layers), head, self.masks, weights)

  def __getattr__(self, name: str) -> Any:
    if name == '_network':
      raise AttributeError(name)
    return getattr(self._network, name)


def mask_actions(network: Any, masks: action_masks.ActionMasks) -> Any:
  """Makes a network mask its outputs.

  A network with an attribute `masks` gets them and is returned, any other one
  is wrapped.
  """
  if not hasattr(network, 'masks'):
    return MaskedNetwork(network, masks)
  network.masks = masks
  return network


def apply_head(
  head: Callable[..., types.Nest], features: tf.Tensor, mask: tf.Tensor | None
) -> Any:
  """Maps features `[B, D]` to the masked outputs of a head.

  Outputs are `[B, P, ...]`, or a named tuple with such `parameters`, as
  `heads.ActorCriticOutput`. Masks are `[B, P]`; None for no masks.
  """
  if mask is None:
    return head(features)
  if isinstance(head, heads.DuelingHead):
    return _mask_outputs(head(features, mask), mask)
  return _mask_outputs(head(features), mask)


def masked_in_numpy(
  torso: Any,
  head: Any,
  masks: action_masks.ActionMasks,
  weights: numpy_functions.Weights,
) -> Callable:
  """Returns the NumPy version of a torso and a head with masked outputs."""
  if masks.leaf_index is None:
    raise numpy_functions.NoNumpyError('the masks are of several integers.')
  extract = numpy_functions.forward(torso, weights)
  evaluate: Any = numpy_functions.forward(head, weights)
  takes_mask = isinstance(head, heads.DuelingHead)
  masked = np.full([1], action_masks.MASKED, np.float32)

  def call(leaves):
    mask = masks.in_numpy(leaves)
    features = extract(leaves)
    outputs = evaluate(features, mask) if takes_mask else evaluate(features)
    return np.where(mask, outputs, masked)

  return call


def _mask_outputs(outputs: Any, mask: tf.Tensor) -> Any:
  if hasattr(outputs, 'parameters'):
    return outputs._replace(parameters=_mask_outputs(outputs.parameters, mask))
  size, axis = mask.shape[-1], mask.shape.rank - 1
  shape = getattr(outputs, 'shape', None)
  if shape is None or len(shape) <= axis or shape[axis] != size:
    raise ValueError(
      f'Outputs of a network with action masks must be [..., {size}], or a '
      f'named tuple with such parameters, got {outputs!r}.'
    )
  return action_masks.apply(outputs, mask)
