"""Demonstrations, mixed with replayed items in every batch."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from repertory.components import replay, types
from repertory.components.transports import experience as experience_lib
from repertory.components.transports import offline_transport


class Demonstrations:
  """Adds uniformly sampled rows of recorded data to every batch.

  Demonstrations are spread evenly over the batch, so that each part of it has
  its share, and are marked in it, see `types.Sample`. They have no priorities:
  importance weights treat them as uniform samples from a separate table.

  Attributes:
    is_resumed: Whether sampling resumes from a checkpoint.
  """

  is_resumed = False

  def __init__(
    self,
    experience: experience_lib.Experience,
    transport: offline_transport.OfflineTransport,
  ):
    """Takes a filled transport of `experience.demonstrated`."""
    self._transport = transport
    self._end = transport.make_learner_side()
    self._is_demonstrated = places(experience)

  def mix(self, replayed: replay.Batches) -> replay.Batches:
    """Returns batches with rows of both, which close both sources."""
    return _MixedBatches(replayed, self._end.batches, self._is_demonstrated)

  def without(self, priorities: replay.Priorities) -> replay.Priorities:
    """Returns priority updates that skip the demonstrations."""
    return _ReplayedPriorities(priorities, ~self._is_demonstrated)

  def describe(self) -> dict[str, Any]:
    """Returns plain values with the state of the sampler."""
    return self._transport.sampler_state()

  def restore(self, described: dict[str, Any] | None) -> None:
    """Restores the sampler if it belongs to the same data."""
    self.is_resumed = described is not None and self._transport.restore_sampler(
      described
    )


def places(experience: experience_lib.Experience) -> np.ndarray:
  """Returns the mask of demonstrations in a batch, bool `[B]`."""
  count = experience.num_demonstrations
  size = experience.batch_size + count
  # Row i follows ⌊i · count / size⌋ demonstrations.
  return np.diff(np.arange(size + 1) * count // size) > 0


@dataclasses.dataclass(eq=False)
class _MixedBatches(replay.Batches):
  """Merges rows of two sources, at fixed positions."""

  _replayed: replay.Batches
  _demonstrated: replay.Batches
  _is_demonstrated: np.ndarray

  @property
  def element_spec(self) -> types.Sample:
    size = len(self._is_demonstrated)
    spec = tree.map_structure(
      lambda spec: tf.TensorSpec([size, *spec.shape[1:]], spec.dtype),
      self._replayed.element_spec,
    )
    return spec._replace(is_demonstration=tf.TensorSpec([size], tf.bool))

  def __next__(self) -> types.Sample:
    mixed = tree.map_structure(
      self._mix, next(self._replayed), next(self._demonstrated)
    )
    return mixed._replace(is_demonstration=self._is_demonstrated)

  def _mix(self, replayed: types.Array, demonstrated: np.ndarray) -> np.ndarray:
    mixed = np.empty(
      [len(self._is_demonstrated), *demonstrated.shape[1:]], demonstrated.dtype
    )
    mixed[~self._is_demonstrated] = replayed
    mixed[self._is_demonstrated] = demonstrated
    return mixed

  def reset_timeout(self) -> None:
    self._replayed.reset_timeout()

  def close(self) -> None:
    self._demonstrated.close()  # Of this process: it cannot fail.
    self._replayed.close()


@dataclasses.dataclass(eq=False)
class _ReplayedPriorities(replay.Priorities):
  """Forwards the priorities of replayed rows only."""

  _priorities: replay.Priorities
  _is_replayed: np.ndarray

  def update(self, keys, priorities):
    self._priorities.update(
      np.asarray(keys)[self._is_replayed],
      np.asarray(priorities)[self._is_replayed],
    )

  def flush(self):
    self._priorities.flush()

  def close(self):
    self._priorities.close()
