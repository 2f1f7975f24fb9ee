"""From observations to feature vectors."""

from collections.abc import Sequence

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from repertory.components import specs, types


class FlatTorso(snt.Module):
  """Flattens and joins all leaves of an observation, then an MLP.

  For observations that are vectors, or small enough to be treated as such.
  """

  def __init__(self, hidden_sizes: Sequence[int], name: str = 'flat_torso'):
    super().__init__(name=name)
    self._mlp = snt.nets.MLP(hidden_sizes, activate_final=True)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """Maps a nest of numeric `[B, ...]` to features `[B, D]`."""
    flat = [
      tf.reshape(tf.cast(leaf, tf.float32), [tf.shape(leaf)[0], _size(leaf)])
      for leaf in tree.flatten(observation)
    ]
    joined = flat[0] if len(flat) == 1 else tf.concat(flat, axis=-1)
    return self._mlp(joined)  # [B, D]


def check_flat_observation(observation_spec: types.Nest) -> None:
  """Refuses observations that `FlatTorso` is no network for.

  Raises:
    ValueError: Naming the leaf, if it is not numeric, is an image, or is empty.
  """
  leaves = tree.flatten_with_path(observation_spec)
  if not leaves:
    raise ValueError('The observation spec must have a leaf, got none.')
  for path, spec in leaves:
    where = '/'.join(str(step) for step in path) or 'observation'
    if not isinstance(spec, specs.Array):
      raise ValueError(
        f'Leaf {where} of the observation spec must be a dm_env spec, got '
        f'{spec!r}.'
      )
    numeric = np.issubdtype(spec.dtype, np.number) or spec.dtype == np.bool_
    if not numeric or len(spec.shape) > 2 or 0 in spec.shape:
      raise ValueError(
        f'Leaf {where} of the observation must be numeric, of rank 0 to 2 and '
        f'not empty for a flat network, got shape {spec.shape} and dtype '
        f'{spec.dtype}. Give the builder a network of your own.'
      )


def _size(leaf: tf.Tensor) -> int:
  return int(np.prod(leaf.shape[1:]))
