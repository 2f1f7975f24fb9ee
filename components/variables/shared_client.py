"""Variable client of a learner in the same thread."""

from typing import Protocol

from repertory.components.variables import variable_client


class Versioned(Protocol):
  """Learner with a version of its variables."""

  @property
  def version(self) -> int:
    """Learner steps of its variables."""
    ...

  @property
  def max_priority(self) -> float:
    """Largest priority so far."""
    ...


class SharedVariableClient(variable_client.VariableClient):
  """Exposes the version of the learner's own variables, without a copy."""

  def __init__(self, learner: Versioned):
    """Initializes the client."""
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

  def close(self) -> None:
    """Does nothing."""
