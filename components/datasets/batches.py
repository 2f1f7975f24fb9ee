"""What gives a learner its batches."""

import abc
from collections.abc import Iterator

import tensorflow as tf
import tree

from repertory.components import types
from repertory.components.replay import tables, waits, writers


class Starved(Exception):
  """No batch came in due time; what was sampled ahead has been given up."""


class Batches(Iterator[types.Sample], abc.ABC):
  """Iterates over batches of a replay table; waits for one that is not due.

  Attributes:
    patience_seconds: After how long `next` raises `Starved`; None for never.
  """

  patience_seconds: float | None = None

  @property
  @abc.abstractmethod
  def element_spec(self) -> types.Sample:
    """The `tf.TensorSpec`s of a batch."""

  @abc.abstractmethod
  def __next__(self) -> types.Sample:
    """Waits for the next batch.

    Returns:
      Its leaves, as tensors or as arrays that do not change any more.

    Raises:
      signals.Stopped: If this was closed or the stop signal was set.
      TimeoutError: If no batch came in time.
      Starved: If none came within `patience_seconds`; it may be asked again.
    """

  @abc.abstractmethod
  def excuse(self) -> None:
    """Counts the time of a wait from here, if there is one now.

    For those who know why nothing comes, and that something will; called in
    other threads.
    """

  @abc.abstractmethod
  def close(self) -> None:
    """Ends a wait, now and for all times, and all threads."""


def describe_wait(
  table: tables.Table, place: writers.Place, seen: waits.Seen, num_samples: int
) -> str:
  """Says what a wait for a batch is for, and how the table is.

  Args:
    table: The table, as the agent describes it.
    place: Where it is.
    seen: How it is.
    num_samples: Items that are to be sampled at once.
  """
  numbers = waits.before_samples(table, seen, num_samples)
  return f"a batch from table '{table.name}' of {place}. {numbers}".rstrip()


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
