"""Interface of the learner's batches."""

import abc
from collections.abc import Iterator

import tensorflow as tf
import tree

from repertory.components import types
from repertory.components.replay import tables, waits


class BatchTimeout(Exception):
  """Raised when no batch arrives in time; prefetched samples are discarded."""


class Batches(Iterator[types.Sample], abc.ABC):
  """Iterator over batches of a replay table; waits until one is due.

  Attributes:
    batch_timeout_seconds: Time until `next` raises `BatchTimeout`; None
      for never.
  """

  batch_timeout_seconds: float | None = None

  @property
  @abc.abstractmethod
  def element_spec(self) -> types.Sample:
    """Specs of a batch, as `tf.TensorSpec`s."""

  @abc.abstractmethod
  def __next__(self) -> types.Sample:
    """Waits for the next batch.

    Returns:
      The batch, as tensors or as arrays that never change.

    Raises:
      signals.Stopped: If this was closed or the stop signal was set.
      TimeoutError: If no batch arrived in time.
      BatchTimeout: If none arrived within `batch_timeout_seconds`; `next` may
        be called again.
    """

  @abc.abstractmethod
  def reset_timeout(self) -> None:
    """Restarts the timeout of the current wait, if there is one.

    For callers in other threads that know the cause of the delay, and its end.
    """

  @abc.abstractmethod
  def close(self) -> None:
    """Ends current and future waits, and all threads."""


def describe_wait(
  table: tables.TableSpec, place: waits.WaitPolicy, seen: waits.Seen
) -> str:
  """Describes a wait for a batch and the table's status."""
  text = waits.describe(table, seen)
  return f"a batch from table '{table.name}' of {place}. {text}".rstrip()


def sample_spec(signature: types.Nest, batch_size: int) -> types.Sample:
  """Returns the specs of batches of items.

  Args:
    signature: Nest of `tf.TensorSpec` of one item.
    batch_size: B.
  """
  return types.Sample(
    tree.map_structure(
      lambda spec: tf.TensorSpec([batch_size, *spec.shape], spec.dtype),
      signature,
    ),
    keys=tf.TensorSpec([batch_size], tf.uint64),
    probabilities=tf.TensorSpec([batch_size], tf.float64),
    table_sizes=tf.TensorSpec([batch_size], tf.int64),
  )
