"""Variable clients for actors in the learner's process."""

import collections
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from repertory.components.runtime import compilation, signals
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

  Attributes:
    shapes: Shapes of the variables.
  """

  def __init__(self, variables: Sequence[tf.Variable]):
    self._variables = list(variables)  # Keeps them alive.
    self.shapes = [variable.shape for variable in variables]
    self._kept: collections.deque[_Snapshot] = collections.deque(maxlen=1)
    self._has_come = threading.Condition()
    self._read = compilation.compile_variable_reads(
      [(variable.handle, variable.dtype) for variable in self._variables]
    )

  @property
  def newest(self) -> _Snapshot | None:
    """The latest snapshot; None without one."""
    with self._has_come:
      return self._kept[-1] if self._kept else None

  def publish(self, version: int, max_priority: float) -> None:
    """Takes a snapshot; no thread may write to the variables meanwhile."""
    values = self._read()
    newest = _Snapshot(values, version, max_priority, time.monotonic())
    with self._has_come:
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
      for version, max_priority, values in reversed(copied):
        if version < newest:
          tensors = [tf.constant(value) for value in values]
          self._kept.appendleft(
            _Snapshot(tensors, version, max_priority, time.monotonic())
          )

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
      kept = [snapshot.version for snapshot in self._kept]
      if kept and kept[-1] > version:
        raise LookupError(
          f'version must be one of the kept {kept}, got {version}.'
        )
      return None


class LocalVariableClient(variable_client.VariableClient):
  """Copies the variables that a learner in the same process publishes.

  The copies have the same order and shapes, perhaps on another device.
  """

  def __init__(self, publisher: Publisher, variables: Sequence[tf.Variable]):
    variable_client.check_alike('variables', publisher.shapes, variables)
    self._publisher = publisher
    self._variables = list(variables)
    self._taken: _Snapshot | None = None

  @property
  def version(self) -> int:
    return self._taken.version if self._taken else -1

  @property
  def age_seconds(self) -> float:
    return time.monotonic() - self._taken.at if self._taken else 0.0

  @property
  def max_priority(self) -> float:
    return self._taken.max_priority if self._taken else 1.0

  def update(self, wait: bool = False) -> None:
    """Applies the latest snapshot, unless it is in use."""
    del wait  # Snapshots are available at once.
    newest = self._publisher.newest
    if newest is not None and newest is not self._taken:
      self._take(newest)

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


class CopyingVariableClient(LocalVariableClient):
  """Copies the current variables of a learner in the same thread.

  For actors whose variables are not the learner's own; otherwise see
  `SharedVariableClient`. The learner has version and priority of `sources`.
  """

  def __init__(
    self,
    learner: Any,
    sources: Sequence[tf.Variable],
    variables: Sequence[tf.Variable],
  ):
    super().__init__(Publisher(sources), variables)
    self._learner = learner

  def update(self, wait: bool = False) -> None:
    if self.version != self._learner.version:
      self._publisher.publish(self._learner.version, self._learner.max_priority)
    super().update(wait)


class ScheduledVariableClient(LocalVariableClient):
  """Copies variables that a learner in the same process publishes, on schedule.

  So the version at each step does not depend on thread speeds: variables change
  at the start of a round, which waits for its scheduled version.
  """

  def __init__(
    self,
    publisher: Publisher,
    variables: Sequence[tf.Variable],
    *,
    period: int,
    first_round: int = 0,
    version_of: Callable[[int], int],
    timeout_seconds: float,
    stop: signals.StopSignal,
  ):
    """Initializes the client.

    Args:
      publisher: Keeps as many versions as the learner may be ahead of actors.
      variables: Targets of the copies, in the same order.
      period: Steps per round, at least 1.
      first_round: Index of the round of the first step.
      version_of: Returns the version for a round, from 0; must not decrease.
      timeout_seconds: Timeout of a wait.
      stop: Signal that ends a wait.
    """
    super().__init__(publisher, variables)
    self._period = period
    self._version_of = version_of
    self._timeout_seconds = timeout_seconds
    self._stop = stop
    self._num_steps = first_round * period

  def update(self, wait: bool = False) -> None:
    """Applies the scheduled variables at the start of a round.

    With `wait`, it precedes the first step; other calls follow a step. Raises a
    LookupError if the version is no longer kept, and the errors of waits.
    """
    if not wait:
      self._num_steps += 1
    if self._num_steps % self._period:
      return
    version = self._version_of(self._num_steps // self._period)
    if version == self.version:
      return

    def take(seconds: float) -> bool:
      snapshot = self._publisher.wait_for(version, seconds)
      if snapshot is not None:
        self._take(snapshot)
      return snapshot is not None

    signals.wait_for(
      take,
      lambda: f'version {version} of the variables from the learner',
      self._timeout_seconds,
      self._stop,
    )
