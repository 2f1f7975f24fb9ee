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
    division = _Division(
      function, _scope.devices, inputs, input_axes, output_axes
    )
    return division.call()

  return call


class _Division:
  """A single call, split over devices."""

  def __init__(self, function, names, inputs, input_axes, output_axes):
    self._function = function
    self._inputs = inputs
    self._leaves = [tf.convert_to_tensor(x) for x in tree.flatten(inputs)]
    self._axes = _axes_of_leaves(inputs, input_axes or [0] * len(inputs))
    self._output_axes = output_axes
    num_rows = self._leaves[0].shape[self._axes[0]]
    if num_rows is None:
      raise ValueError(
        'The number of rows must be known when a function is split over '
        f'{list(names)}, got shape {self._leaves[0].shape}.'
      )
    self._names = names[:num_rows]
    each, left = divmod(num_rows, len(self._names))
    # Equal shares; the first devices take the remainder.
    self._sizes = [each + (i < left) for i in range(len(self._names))]
    # Per device: its tape, inputs and outputs.
    self._parts: list[tuple[tf.GradientTape, list, list]] = []
    self._structure: Any = None
    self._axes_of_outputs: list[int] = []

  def call(self) -> types.Nest:
    outputs = tf.custom_gradient(self._run)(*self._leaves)
    return tree.unflatten_as(self._structure, tree.flatten(outputs))

  def _run(self, *leaves: tf.Tensor):
    for name, part in zip(self._names, self._split(leaves, self._axes)):
      with tf.device(name), tf.GradientTape(persistent=True) as tape:
        tape.watch([leaf for leaf in part if leaf.dtype.is_floating])
        outputs = self._function(*tree.unflatten_as(self._inputs, part))
        flat = [tf.identity(leaf) for leaf in tree.flatten(outputs)]
      self._parts.append((tape, part, flat))
      self._structure = outputs
    if self._output_axes is None:
      self._axes_of_outputs = [0] * len(self._parts[0][2])
    else:
      self._axes_of_outputs = _axes_of_leaves(
        self._structure, self._output_axes
      )
    joined = [
      tf.concat(column, axis)
      for column, axis in zip(
        zip(*(flat for _, _, flat in self._parts)), self._axes_of_outputs
      )
    ]
    return joined, self._gradient

  def _gradient(self, *upstream: tf.Tensor, variables=None):
    """Returns gradients of the inputs, None for integers, and of variables."""
    variables = list(variables or [])
    of_parts = []
    pieces = self._split(upstream, self._axes_of_outputs)
    for name, (tape, part, flat), piece in zip(
      self._names, self._parts, pieces
    ):
      floats = [leaf for leaf in part if leaf.dtype.is_floating]
      with tf.device(name):
        gradients = tape.gradient(
          flat, [*floats, *variables], piece, tf.UnconnectedGradients.ZERO
        )
        of_parts.append([tf.convert_to_tensor(g) for g in gradients])
    columns = iter(zip(*of_parts))
    of_inputs = [
      tf.concat(next(columns), axis) if leaf.dtype.is_floating else None
      for leaf, axis in zip(self._leaves, self._axes)
    ]
    of_variables = [tf.add_n(column) for column in columns]
    return (of_inputs, of_variables) if variables else of_inputs

  def _split(
    self, leaves: Sequence[tf.Tensor], axes: Sequence[int]
  ) -> list[list[tf.Tensor]]:
    """Returns the leaves of each device."""
    columns = [tf.split(x, self._sizes, axis) for x, axis in zip(leaves, axes)]
    return [list(part) for part in zip(*columns)]


def _axes_of_leaves(
  nests: Sequence[types.Nest], axes: Sequence[int]
) -> list[int]:
  return [
    axis
    for nest, axis in zip(nests, axes, strict=True)
    for _ in tree.flatten(nest)
  ]
