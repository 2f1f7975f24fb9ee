"""What carries experience inside a compiled program."""

import abc
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from repertory.components import replay, types
from repertory.components.rollouts import acting

# Acts in all environments once.
Act = Callable[
  [acting.Carry], tuple[acting.Carry, acting.Step, acting.Episodes]
]


class ProgramRoad(tf.Module, abc.ABC):
  """Keeps what was lived as tensors and variables of the program itself.

  It reads the description that other roads read, see
  `components.experience.Experience`. The program takes turns: `collect`, and
  then as many updates as are due. What takes part in it is traced.

  Attributes:
    num_steps: Steps of all environments that `collect` takes.
    max_updates: Updates that may be due after it, at the most.
    has_priorities: Whether items have priorities.
  """

  num_steps: int
  max_updates: int
  has_priorities: bool = False

  @property
  def num_bytes(self) -> int:
    """What it keeps of experience takes so much memory, at the most."""
    return 0

  def begin(self, carry: acting.Carry) -> None:
    """Takes what the first step begins with; called once, not traced."""

  @abc.abstractmethod
  def collect(
    self,
    act: Act,
    carry: acting.Carry,
    version: tf.Tensor,
    max_priority: tf.Tensor,
  ) -> tuple[acting.Carry, types.Nest, acting.Episodes]:
    """Takes steps, and keeps what happened.

    Args:
      act: Takes one.
      carry: What it begins with.
      version: Learner steps of the variables that act, int64.
      max_priority: The largest priority so far, float64.

    Returns:
      What goes on; what `sample` needs of it until the next call; and
      the episodes, `[num_steps, ...]`.
    """

  @abc.abstractmethod
  def is_due(self, held: types.Nest, num_updates: tf.Tensor) -> tf.Tensor:
    """Returns whether one more update is due, a bool.

    Args:
      held: From `collect`.
      num_updates: Updates since then.
    """

  @abc.abstractmethod
  def sample(self, held: types.Nest, num_updates: tf.Tensor) -> types.Sample:
    """Returns the batch of the next update; the arguments are `is_due`'s."""

  @abc.abstractmethod
  def set_priorities(
    self, sample: types.Sample, priorities: tf.Tensor, finite: tf.Tensor
  ) -> None:
    """Gives the items of a batch new priorities, if they have any.

    Args:
      sample: The batch.
      priorities: `[B]`.
      finite: Whether they are; else nothing changes.
    """

  @property
  @abc.abstractmethod
  def sample_spec(self) -> types.Sample:
    """The `tf.TensorSpec`s of a batch."""

  @abc.abstractmethod
  def statuses(self) -> Mapping[str, replay.TableStatus]:
    """Returns the state of all tables, by name."""

  @property
  @abc.abstractmethod
  def saved_spec(self) -> Mapping[str, tf.TensorSpec]:
    """What `save` returns: shapes and dtypes by name."""

  @abc.abstractmethod
  def save(self) -> Mapping[str, Any]:
    """Returns all that it holds, as arrays by name."""

  @abc.abstractmethod
  def restore(self, arrays: Mapping[str, Any]) -> None:
    """Goes on from what `save` returned."""
