"""Variable clients for actors in the learner's process."""

import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from repertory.components.runtime import compilation
from repertory.components.variables import variable_client


class Publisher:
  """Holds the latest snapshot of a learner's variables, all of one step.

  Reading a variable does not copy it: TensorFlow copies when the variable is
  written while a tensor still refers to its old value. Assigning it to another
  variable of the same device does not copy either.

  Attributes:
    shapes: Shapes of the variables.
    newest: The latest snapshot; None without one.
  """

  newest: variable_client.Snapshot | None = None

  def __init__(self, variables: Sequence[tf.Variable]):
    self._variables = list(variables)  # Keeps them alive.
    self.shapes = [variable.shape for variable in variables]
    self._read = compilation.compile_variable_reads(
      [(variable.handle, variable.dtype) for variable in self._variables]
    )

  def publish(self, version: int, max_priority: float) -> None:
    """Takes a snapshot; no thread may write to the variables meanwhile."""
    self.newest = variable_client.Snapshot(
      self._read(), version, max_priority, time.monotonic()
    )


class LocalVariableClient(variable_client.VariableClient):
  """Copies the variables that a learner in the same process publishes.

  The copies have the same order and shapes, perhaps on another device.
  """

  def __init__(self, publisher: Publisher, variables: Sequence[tf.Variable]):
    variable_client.check_alike('variables', publisher.shapes, variables)
    self._publisher = publisher
    self._variables = list(variables)

  def update(self, wait: bool = False) -> None:
    """Applies the latest snapshot, unless it is in use."""
    del wait  # Snapshots are available at once.
    newest = self._publisher.newest
    if newest is None or newest is self._taken:
      return
    for variable, value in zip(self._variables, newest.values):
      if value.device == variable.device:
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
        continue
      # TensorFlow confuses tensors of several threads if one operation both
      # copies them to a device and wraps operations in functions.
      eager: Any = value
      value = eager._copy_to_device(variable.device)
      with tf.device(variable.device):
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
    self._taken = newest
