"""Inputs of the losses of agents that learn from minibatches of unrolls."""

from typing import Any, NamedTuple

import tensorflow as tf
import tree

from repertory.components import types


class Steps(NamedTuple):
  """Inputs of a loss for K items of a batch, `[K, T, ...]`; () if unused.

  Attributes:
    observation: x_t.
    first: Whether x_t is the first of an episode.
    mask: False for padding.
    state: Recurrent state before x_0, `[K, ...]`.
    action: a_t, or the sample of the distribution for it.
    target: Target of the value.
    advantage: A_t.
    old: Outputs of the policy that acted, or before the update.
    others: Data for an additional loss.
  """

  observation: types.Nest
  first: tf.Tensor
  mask: tf.Tensor
  state: types.Nest
  action: types.Nest
  target: tf.Tensor
  advantage: types.Nest = ()
  old: types.Nest = ()
  others: Any = ()


def steps_of(data: types.Sequence, **inputs: types.Nest) -> Steps:
  """Returns steps of unrolls, `[T, B, ...]`, with further fields of `Steps`."""
  return Steps(
    observation=tree.map_structure(lambda x: x[:-1], data.observation),
    first=data.first[:-1],
    mask=data.mask,
    state=data.state,
    **inputs,
  )
