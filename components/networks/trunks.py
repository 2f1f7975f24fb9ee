"""Trunks: hidden layers by name."""

from collections.abc import Callable, Mapping, Sequence

import sonnet as snt

from repertory.components.networks import (
  batch_renorm_mlp,
  layer_norm_mlp,
  normalized_mlp,
  simba,
)


def _make_mlp(hidden_sizes: Sequence[int]) -> snt.Module:
  return snt.nets.MLP(hidden_sizes, activate_final=True)


BODIES: Mapping[str, Callable[[Sequence[int]], snt.Module]] = {
  'mlp': _make_mlp,
  'layer_norm_mlp': layer_norm_mlp.LayerNormMLP,
  'normalized_mlp': normalized_mlp.NormalizedMLP,
  'batch_renorm_mlp': batch_renorm_mlp.BatchRenormMLP,
  'simba': simba.SimBa,
}


def make_trunk(kind: str, hidden_sizes: Sequence[int]) -> snt.Module:
  """Creates hidden layers that map inputs `[B, F]` to features `[B, D]`.

  Args:
    kind: One of `BODIES`: 'mlp' has a ReLU after each layer; the others
      are `LayerNormMLP`, `NormalizedMLP`, `BatchRenormMLP` and `SimBa`.
    hidden_sizes: Sizes of the layers; the last one is D.

  Raises:
    ValueError: If the kind is unknown or the sizes are invalid.
  """
  if kind not in BODIES:
    raise ValueError(f'kind must be one of {list(BODIES)}, got {kind!r}.')
  return BODIES[kind](hidden_sizes)
