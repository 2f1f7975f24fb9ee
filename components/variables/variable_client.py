"""Base class of variable clients, and the client of a learner's own."""

import abc
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf


class Snapshot(NamedTuple):
  """Variables of one learner step, the largest priority by then, and a time."""

  values: Sequence[tf.Tensor]
  version: int
  max_priority: float
  at: float


class VariableClient(abc.ABC):
  """Keeps an actor's variables up to date.

  The topology chooses the implementation: the actor uses the learner's own
  variables (`SharedVariableClient`), the learner publishes them in the same
  process (`LocalVariableClient`), or the actor fetches them from another
  process (`RemoteVariableClient`).
  """

  _taken: Snapshot | None = None

  @property
  def version(self) -> int:
    """Learner steps of the current variables; −1 before there are any.

    Equal versions imply equal variables.
    """
    return self._taken.version if self._taken else -1

  @property
  def age_seconds(self) -> float | None:
    """Age of the current variables; None if they are the learner's own."""
    return time.monotonic() - self._taken.at if self._taken else 0.0

  @property
  def max_priority(self) -> float:
    """Largest priority of the learner at the version of the variables."""
    return self._taken.max_priority if self._taken else 1.0

  @abc.abstractmethod
  def update(self, wait: bool = False) -> None:
    """Applies new variables; with `wait`, blocks until they are the newest.

    Raises:
      signals.Stopped: If the stop signal was set during a wait.
      TimeoutError: If a wait was too long.
    """

  def close(self) -> None:  # noqa: B027 (only some have threads)
    """Ends all threads, if there are any."""


class SharedVariableClient(VariableClient):
  """Exposes the version of the learner's own variables, without a copy."""

  def __init__(self, learner: Any):
    """Takes a learner with the attributes `version` and `max_priority`."""
    self._learner = learner

  @property
  def version(self) -> int:
    return self._learner.version

  @property
  def age_seconds(self) -> None:
    return None

  @property
  def max_priority(self) -> float:
    return self._learner.max_priority

  def update(self, wait: bool = False) -> None:
    del wait  # They are always up to date.


def check_alike(
  name: str,
  sources: Sequence[tf.TensorShape],
  variables: Sequence[tf.Variable],
) -> None:
  """Raises a ValueError if shapes differ between learner and actor."""
  found = [tuple(shape) for shape in sources]
  expected = [tuple(variable.shape) for variable in variables]
  if found != expected:
    raise ValueError(
      f'{name.capitalize()} of the learner must have the shapes {expected}, '
      f'got {found}. make_network must create the same variables, in the same '
      'order, each time it is called.'
    )
