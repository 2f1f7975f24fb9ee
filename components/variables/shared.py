"""Variables of a learner that is in the same thread as who acts."""

from typing import Protocol

from repertory.components.variables import followed


class Versioned(Protocol):
  """A learner, as far as its variables are concerned."""

  @property
  def version(self) -> int:
    """Learner steps of its variables."""
    ...

  @property
  def max_priority(self) -> float:
    """The largest priority so far."""
    ...


class SharedVariables(followed.FollowedVariables):
  """Tells of variables that are the learner's own, so there is no copy."""

  def __init__(self, learner: Versioned):
    """Keeps the learner."""
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
    del wait  # They are never old.

  def close(self) -> None:
    """Has nothing to end."""
