"""Fresh variables for those who act beside the learner."""

import collections
import math
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from repertory.components import compilation
from repertory.components.variables import followed


class _Snapshot(NamedTuple):
  values: Sequence[tf.Tensor]
  version: int
  max_priority: float
  at: float


class Publisher:
  """Holds the newest variables of a learner, all of one step.

  Reading a variable costs no copy: TensorFlow makes one when the variable is
  written to while a tensor still refers to its old value. Nor does giving it to
  another variable of the same device.
  """

  def __init__(self, variables: Sequence[tf.Variable]):
    """Publishes nothing yet."""
    self._variables = list(variables)  # Else they might be gone.
    self._kept: collections.deque[_Snapshot] = collections.deque(maxlen=1)
    self._has_come = threading.Condition()
    self._read = compilation.compile_reading(
      [(variable.handle, variable.dtype) for variable in self._variables]
    )
    self.newest: _Snapshot | None = None

  @property
  def shapes(self) -> list[tf.TensorShape]:
    """The shapes of the variables."""
    return [variable.shape for variable in self._variables]

  def publish(self, version: int, max_priority: float) -> None:
    """Takes a snapshot; to be called when the variables are not written to."""
    values = self._read()
    newest = _Snapshot(values, version, max_priority, time.monotonic())
    with self._has_come:
      self.newest = newest
      self._kept.append(newest)
      self._has_come.notify_all()

  def keep(self, num_versions: int) -> None:
    """Keeps as many of the newest versions from now on, for `wait_for`."""
    with self._has_come:
      self._kept = collections.deque(self._kept, num_versions)

  def copy_from(
    self, version: int
  ) -> list[tuple[int, float, list[np.ndarray]]]:
    """Returns those of this version and later that are kept, for `restore`."""
    with self._has_come:
      kept = [one for one in self._kept if one.version >= version]
    return [
      (one.version, one.max_priority, [value.numpy() for value in one.values])
      for one in kept
    ]

  def restore(
    self, copied: Sequence[tuple[int, float, Sequence[np.ndarray]]]
  ) -> None:
    """Keeps what was copied, of versions before the newest, as well."""
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
    """Waits at most so long for a version; returns None if it has not come.

    Raises:
      LookupError: If it is not kept any more, or was never published.
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
          f'Version {version} of the variables is not kept: there are '
          f'{[snapshot.version for snapshot in self._kept]}.'
        )
      return None


class PublishedVariables(followed.FollowedVariables):
  """Copies what a learner of the same process has published.

  The copy may be on another device.
  """

  def __init__(self, publisher: Publisher, variables: Sequence[tf.Variable]):
    """Keeps the parts.

    Args:
      publisher: What the learner publishes to.
      variables: Take the values, in the same order.

    Raises:
      ValueError: If their shapes differ from the published ones.
    """
    followed.check_alike('variables', publisher.shapes, variables)
    self._publisher = publisher
    self._variables = list(variables)
    self._taken: _Snapshot | None = None

  @property
  def version(self) -> int:
    """Learner steps of the variables in use; −1 before there are any."""
    return self._taken.version if self._taken else -1

  @property
  def age_seconds(self) -> float:
    """Time since the variables in use were published."""
    return time.monotonic() - self._taken.at if self._taken else 0.0

  @property
  def max_priority(self) -> float:
    """The learner's largest priority, as of the variables in use."""
    return self._taken.max_priority if self._taken else 1.0

  def update(self, wait: bool = False) -> None:
    """Takes over the newest variables, if these are not in use yet."""
    del wait  # They are there at once.
    newest = self._publisher.newest
    if newest is not None and newest is not self._taken:
      self._take(newest)

  def close(self) -> None:
    """Has nothing to end."""

  def _take(self, snapshot: _Snapshot) -> None:
    """Copies what was published."""
    for variable, value in zip(self._variables, snapshot.values):
      if value.device == variable.device:
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
        continue
      # What several threads hand from one device to another TensorFlow mixes
      # up, if an operation does so while it wraps operations in functions.
      eager: Any = value
      value = eager._copy_to_device(variable.device)
      with tf.device(variable.device):
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
    self._taken = snapshot
