"""Interface of experience transports inside a compiled program."""

import abc
from collections.abc import Callable, Mapping

import tensorflow as tf

from repertory.components import replay, types
from repertory.components.anakin import acting

# Takes one step in all environments.
Act = Callable[
  [acting.Carry], tuple[acting.Carry, acting.Step, acting.EndedEpisodes]
]


class CompiledTransport(tf.Module, abc.ABC):
  """Experience transport as tensors and variables of the program.

  It uses the same description as other transports, see
  `transports.experience.Experience`. Each iteration of the program calls
  `collect`, and then runs the updates that are due. Methods called in it are
  traced.

  Attributes:
    num_steps: Steps of all environments per `collect`.
    max_updates: Maximum number of updates that are due after it.
    has_priorities: Whether items have priorities.
  """

  num_steps: int
  max_updates: int
  has_priorities: bool = False

  def __init__(self, table: replay.TableSpec, batch_size: int):
    super().__init__()
    self._table, self._batch_size = table, batch_size

  @property
  def num_bytes(self) -> int:
    """Maximum memory of the stored experience, in bytes."""
    return 0

  def begin(self, carry: acting.Carry) -> None:
    """Initializes the state before the first step; called once, not traced."""

  @abc.abstractmethod
  def collect(
    self,
    act: Act,
    carry: acting.Carry,
    version: tf.Tensor,
    max_priority: tf.Tensor,
  ) -> tuple[acting.Carry, types.Nest, acting.EndedEpisodes]:
    """Takes environment steps, and records them.

    Args:
      act: Takes one step.
      carry: State before the first step.
      version: Learner steps of the acting variables, int64.
      max_priority: Largest priority so far, float64.

    Returns:
      The state after the last step; the data that `sample` needs until the next
      call; and the episodes, `[num_steps, ...]`.
    """

  @abc.abstractmethod
  def is_due(self, held: types.Nest, num_updates: tf.Tensor) -> tf.Tensor:
    """Returns whether an update is due, after `num_updates` since `collect`."""

  @abc.abstractmethod
  def sample(self, held: types.Nest, num_updates: tf.Tensor) -> types.Sample:
    """Returns the batch of the next update; the arguments are `is_due`'s."""

  def set_priorities(
    self, sample: types.Sample, priorities: tf.Tensor, finite: tf.Tensor
  ) -> None:
    """Sets new priorities `[B]` of a batch, if the update was finite."""
    raise NotImplementedError

  @property
  def sample_spec(self) -> types.Sample:
    """Specs of a batch, as `tf.TensorSpec`s."""
    return replay.sample_spec(self._table.signature, self._batch_size)

  @abc.abstractmethod
  def statuses(self) -> Mapping[str, replay.TableInfo]:
    """Returns the status of all tables, by name."""

  @property
  def saved(self) -> Mapping[str, tf.Variable]:
    """The complete state, by name in checkpoints."""
    return {f'{i:04d}': v for i, v in enumerate(self.variables)}
