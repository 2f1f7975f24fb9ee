"""What those who act know of the learner's variables."""

import abc
from collections.abc import Sequence

import tensorflow as tf


class FollowedVariables(abc.ABC):
  """Keeps the variables of a policy as fresh as those of its learner.

  Where they come from, the topology chooses: they are the learner's own
  (`SharedVariables`), it publishes them in the same process
  (`PublishedVariables`), or they are fetched from another (`FetchedVariables`).
  """

  @property
  @abc.abstractmethod
  def version(self) -> int:
    """Learner steps of the variables in use; −1 before there are any.

    As long as it is the same, so are they.
    """

  @property
  @abc.abstractmethod
  def age_seconds(self) -> float | None:
    """Time since the learner had them; None where they are its own."""

  @property
  @abc.abstractmethod
  def max_priority(self) -> float:
    """The learner's largest priority, as of the variables in use."""

  @abc.abstractmethod
  def update(self, wait: bool = False) -> None:
    """Takes over what is new.

    Args:
      wait: Whether to come back with the newest there are now.

    Raises:
      signals.Stopped: If a wait was ended.
      TimeoutError: If a wait was too long.
    """

  @abc.abstractmethod
  def close(self) -> None:
    """Ends all threads."""


def check_alike(
  name: str,
  sources: Sequence[tf.TensorShape],
  variables: Sequence[tf.Variable],
) -> None:
  """Compares the shapes of a learner's variables with those of an actor's.

  Args:
    name: Name of the variables, such as `variables 'policy'`.
    sources: The shapes of the learner's.
    variables: The actor's, in the same order.

  Raises:
    ValueError: If they differ.
  """
  found = [tuple(shape) for shape in sources]
  expected = [tuple(variable.shape) for variable in variables]
  if found != expected:
    raise ValueError(
      f'{name.capitalize()} of the learner must have the shapes {expected}, '
      f'got {found}. make_network must create the same variables, in the same '
      'order, each time it is called.'
    )
