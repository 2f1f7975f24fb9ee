"""Data parallelism: splits a network's rows over a learner's devices.

Targets, losses and the optimizer stay on the first device, so an update is the
same for any number of devices, up to rounding. In each update the other devices
read the variables and return the summed gradients of their rows.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
import tree

from repertory.components import types

_scope = threading.local()


@contextlib.contextmanager
def over_devices(names: Sequence[str]) -> Iterator[None]:
  """Splits calls of `split_rows` traced inside over devices.

  XLA compiles for one device: split functions must not be compiled with it.

  Args:
    names: Devices, such as 'GPU:0' and 'GPU:1'; fewer than two split nothing.

  Raises:
    ValueError: At the end, if there were several and nothing was split.
  """
  before = getattr(_scope, 'devices', ()), getattr(_scope, 'is_used', False)
  _scope.devices, _scope.is_used = tuple(names), False
  try:
    yield
    if len(names) > 1 and not _scope.is_used:
      raise ValueError(
        f'Nothing was split over the devices {list(names)}: let the update '
        'call its networks by `data_parallel.by_rows`, or name one device.'
      )
  finally:
    _scope.devices, _scope.is_used = before


def is_dividing() -> bool:
  """Returns whether `split_rows` splits calls that are traced now."""
  return len(getattr(_scope, 'devices', ())) > 1


def split_rows(
  function: Callable[..., types.Nest],
  input_axes: Sequence[int] | None = None,
  output_axes: Sequence[int] | None = None,
) -> Callable[..., types.Nest]:
  """Makes a function splittable over devices, see `over_devices`.

  Args:
    function: Maps nests of tensors to a nest of tensors, or to a tuple of nests
      if `output_axes` is given; row by row, with any variables. Only
      first-order gradients are supported.
    input_axes: The row axis of each argument; 0 if None.
    output_axes: The row axis of each output of a tuple; None if the function
      returns a single nest, whose rows are axis 0.
  """

  def call(*inputs: types.Nest) -> types.Nest:
    if not is_dividing():
      return function(*inputs)
    _scope.is_used = True
    axes = _axes_of_leaves(inputs, input_axes or [0] * len(inputs))
    return _divide(function, inputs, axes, output_axes)

  return call


def _divide(
  function: Callable[..., types.Nest],
  inputs: tuple[types.Nest, ...],
  axes: Sequence[int],
  output_axes: Sequence[int] | None,
) -> types.Nest:
  """Makes a single call, split over devices."""
  leaves = [tf.convert_to_tensor(x) for x in tree.flatten(inputs)]
  num_rows = leaves[0].shape[axes[0]]
  if num_rows is None:
    raise ValueError(
      'The number of rows must be known when a function is split over '
      f'{list(_scope.devices)}, got shape {leaves[0].shape}.'
    )
  names = _scope.devices[:num_rows]
  each, left = divmod(num_rows, len(names))
  # Equal shares; the first devices take the remainder.
  sizes = [each + (i < left) for i in range(len(names))]
  structure: list[Any] = []

  def run(*leaves):
    parts = []  # Per device: its tape, inputs and outputs.
    outputs, flat = (), []
    for name, part in zip(names, _split(leaves, axes, sizes)):
      with tf.device(name), tf.GradientTape(persistent=True) as tape:
        tape.watch([leaf for leaf in part if leaf.dtype.is_floating])
        outputs = function(*tree.unflatten_as(inputs, part))
        flat = [tf.identity(leaf) for leaf in tree.flatten(outputs)]
      parts.append((tape, part, flat))
    structure[:] = [outputs]
    axes_out = [0] * len(flat)
    if output_axes is not None:
      axes_out = _axes_of_leaves(outputs, output_axes)

    def gradient(*upstream, variables=None):
      """Returns gradients of the inputs, None for integers, and variables."""
      variables, of_parts = list(variables or []), []
      pieces = _split(upstream, axes_out, sizes)
      for name, (tape, part, flat), piece in zip(names, parts, pieces):
        floats = [leaf for leaf in part if leaf.dtype.is_floating]
        with tf.device(name):
          gradients = tape.gradient(
            flat, [*floats, *variables], piece, tf.UnconnectedGradients.ZERO
          )
          of_parts.append([tf.convert_to_tensor(g) for g in gradients])
      columns = iter(zip(*of_parts))
      of_inputs = [
        tf.concat(next(columns), axis) if leaf.dtype.is_floating else None
        for leaf, axis in zip(leaves, axes)
      ]
      of_variables = [tf.add_n(column) for column in columns]
      return (of_inputs, of_variables) if variables else of_inputs

    columns = zip(*(flat for _, _, flat in parts))
    return [tf.concat(c, axis) for c, axis in zip(columns, axes_out)], gradient

  outputs = tf.custom_gradient(run)(*leaves)
  return tree.unflatten_as(structure[0], tree.flatten(outputs))


def _split(
  leaves: Sequence[tf.Tensor], axes: Sequence[int], sizes: Sequence[int]
) -> list[list[tf.Tensor]]:
  """Returns the leaves of each device."""
  columns = [tf.split(x, sizes, axis) for x, axis in zip(leaves, axes)]
  return [list(part) for part in zip(*columns)]


def _axes_of_leaves(
  nests: Sequence[types.Nest], axes: Sequence[int]
) -> list[int]:
  return [
    axis
    for nest, axis in zip(nests, axes, strict=True)
    for _ in tree.flatten(nest)
  ]
