"""A network's rows, divided over the devices of a learner.

What comes before and after the network (targets, losses, the optimizer) stays
as it is, on the first device, so an update is the same for any number of
devices but for rounding. In each update the others read the variables and send
back the sum of the gradients of their rows.
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
  """Has the rows of `by_rows` divided, in what is traced inside.

  XLA compiles for one device: what is divided must not be compiled with it.

  Args:
    names: Such as 'GPU:0' and 'GPU:1'; nothing is divided over fewer than two.

  Raises:
    ValueError: At the end, if there were several and nothing was divided.
  """
  before = getattr(_scope, 'devices', ()), getattr(_scope, 'is_used', False)
  _scope.devices, _scope.is_used = tuple(names), False
  try:
    yield
    if len(names) > 1 and not _scope.is_used:
      raise ValueError(
        f'Nothing was divided over the devices {list(names)}: let the update '
        'call its networks by `data_parallel.by_rows`, or name one device.'
      )
  finally:
    _scope.devices, _scope.is_used = before


def is_dividing() -> bool:
  """Returns whether `by_rows` divides what is traced now."""
  return len(getattr(_scope, 'devices', ())) > 1


def by_rows(
  function: Callable[..., types.Nest],
  input_axes: Sequence[int] | None = None,
  output_axes: Sequence[int] | None = None,
) -> Callable[..., types.Nest]:
  """Lets a function be divided over devices, if `over_devices` asks for it.

  Args:
    function: Maps nests of tensors to a nest of tensors, or to a tuple of nests
      if `output_axes` says so; row by row, with any variables. Gradients are
      those of first order.
    input_axes: The axis of the rows in each argument; 0 if None.
    output_axes: The same of each output of a tuple; None if the function
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
  """One call, divided."""

  def __init__(self, function, names, inputs, input_axes, output_axes):
    self._function = function
    self._inputs = inputs
    self._leaves = [tf.convert_to_tensor(x) for x in tree.flatten(inputs)]
    self._axes = _axes_of_leaves(inputs, input_axes or [0] * len(inputs))
    self._output_axes = output_axes
    num_rows = self._leaves[0].shape[self._axes[0]]
    if num_rows is None:
      raise ValueError(
        'The number of rows must be known when a function is divided over '
        f'{list(names)}, got shape {self._leaves[0].shape}.'
      )
    self._names = names[:num_rows]
    each, left = divmod(num_rows, len(self._names))
    # As many for each device, and what is left for the first ones.
    self._sizes = [each + (i < left) for i in range(len(self._names))]
    # Of each device: its tape, what it was given and what it returned.
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
    """Returns gradients of the inputs, None of integers, and of variables."""
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
