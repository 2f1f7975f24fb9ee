"""Variable client for actors in the learner's process."""

import collections
import math
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from repertory.components.runtime import compilation
from repertory.components.variables import variable_client


class _Snapshot(NamedTuple):
  values: Sequence[tf.Tensor]
  version: int
  max_priority: float
  at: float


class Publisher:
  """Holds the latest snapshot of a learner's variables, all of one step.

  Reading a variable does not copy it: TensorFlow copies when the variable is
  written while a tensor still refers to its old value. Assigning it to another
  variable of the same device does not copy either.
  """

  def __init__(self, variables: Sequence[tf.Variable]):
    """Initializes the publisher without a snapshot."""
    self._variables = list(variables)  # Keeps them alive.
    self._kept: collections.deque[_Snapshot] = collections.deque(maxlen=1)
    self._has_come = threading.Condition()
    self._read = compilation.compile_variable_reads(
      [(variable.handle, variable.dtype) for variable in self._variables]
    )
    self.newest: _Snapshot | None = None

  @property
  def shapes(self) -> list[tf.TensorShape]:
    """The shapes of the variables."""
    return [variable.shape for variable in self._variables]

  def publish(self, version: int, max_priority: float) -> None:
    """Takes a snapshot; no thread may write to the variables meanwhile."""
    values = self._read()
    newest = _Snapshot(values, version, max_priority, time.monotonic())
    with self._has_come:
      self.newest = newest
      self._kept.append(newest)
      self._has_come.notify_all()

  def keep(self, num_versions: int) -> None:
    """Keeps the latest `num_versions` snapshots from now on, for `wait_for`."""
    with self._has_come:
      self._kept = collections.deque(self._kept, num_versions)

  def copy_from(
    self, version: int
  ) -> list[tuple[int, float, list[np.ndarray]]]:
    """Returns the kept snapshots from `version` on, for `restore`."""
    with self._has_come:
      kept = [one for one in self._kept if one.version >= version]
    return [
      (one.version, one.max_priority, [value.numpy() for value in one.values])
      for one in kept
    ]

  def restore(
    self, copied: Sequence[tuple[int, float, Sequence[np.ndarray]]]
  ) -> None:
    """Adds copied snapshots that are older than the latest one."""
    with self._has_come:
      newest = self._kept[-1].version if self._kept else math.inf
      older = [
        _Snapshot(
          [tf.constant(value) for value in values],
          version,
          max_priority,
          time.monotonic(),
        )
        for version, max_priority, values in copied
        if version < newest
      ]
      self._kept.extendleft(reversed(older))

  def wait_for(self, version: int, seconds: float) -> _Snapshot | None:
    """Waits up to `seconds` for a version; returns None after the timeout.

    Raises:
      LookupError: If the version is no longer kept, or was never published.
    """
    with self._has_come:
      self._has_come.wait_for(
        lambda: self._kept and self._kept[-1].version >= version, seconds
      )
      for snapshot in self._kept:
        if snapshot.version == version:
          return snapshot
      if self._kept and self._kept[-1].version > version:
        raise LookupError(
          f'version must be one of the kept '
          f'{[snapshot.version for snapshot in self._kept]}, got {version}.'
        )
      return None


class LocalVariableClient(variable_client.VariableClient):
  """Copies the variables that a learner in the same process publishes.

  The copy may be on another device.
  """

  def __init__(self, publisher: Publisher, variables: Sequence[tf.Variable]):
    """Initializes the client.

    Args:
      publisher: Publisher of the learner.
      variables: Targets of the copies, in the same order.

    Raises:
      ValueError: If their shapes differ from the published ones.
    """
    variable_client.check_alike('variables', publisher.shapes, variables)
    self._publisher = publisher
    self._variables = list(variables)
    self._taken: _Snapshot | None = None

  @property
  def version(self) -> int:
    """Learner steps of the current variables; −1 before there are any."""
    return self._taken.version if self._taken else -1

  @property
  def age_seconds(self) -> float:
    """Time since the current variables were published."""
    return time.monotonic() - self._taken.at if self._taken else 0.0

  @property
  def max_priority(self) -> float:
    """Largest priority of the learner at the version of the variables."""
    return self._taken.max_priority if self._taken else 1.0

  def update(self, wait: bool = False) -> None:
    """Applies the latest snapshot, unless it is in use."""
    del wait  # Snapshots are available at once.
    newest = self._publisher.newest
    if newest is not None and newest is not self._taken:
      self._take(newest)

  def close(self) -> None:
    """Does nothing."""

  def _take(self, snapshot: _Snapshot) -> None:
    """Copies a snapshot to the variables."""
    for variable, value in zip(self._variables, snapshot.values):
      if value.device == variable.device:
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
        continue
      # TensorFlow confuses tensors of several threads if one operation both
      # copies them to a device and wraps operations in functions.
      eager: Any = value
      value = eager._copy_to_device(variable.device)
      with tf.device(variable.device):
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
    self._taken = snapshot
