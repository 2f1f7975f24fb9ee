"""Demonstrations, mixed with replayed items in every batch."""

import numpy as np
import tensorflow as tf
import tree

from repertory.components import replay, types
from repertory.components.transports import experience as experience_lib
from repertory.components.transports import offline_transport

# The key of demonstrations: no table has it, so new priorities are ignored.
_NO_KEY = np.uint64(2**64 - 1)


class Demonstrations(replay.Batches):
  """Adds uniformly sampled rows of recorded data to every batch.

  Demonstrations are spread evenly over the batch, so that each part of it has
  its share, and are marked in it, see `types.Sample`. They have no priorities:
  importance weights treat them as uniform samples from a separate table.

  Attributes:
    transport: The recorded data, and the state of their sampler.
    replayed: Batches of the other rows, set by `LearnerSide.mix_in`.
    is_resumed: Whether sampling resumes from a checkpoint.
  """

  replayed: replay.Batches
  is_resumed = False

  def __init__(
    self,
    experience: experience_lib.Experience,
    transport: offline_transport.OfflineTransport,
  ):
    """Takes a filled transport of `experience.demonstrated`."""
    self.transport = transport
    self._demonstrated = transport.make_learner_side().batches
    size, count = experience.rows, experience.num_demonstrations
    # Row i follows ⌊i · count / size⌋ demonstrations.
    self._is_demonstrated = np.diff(np.arange(size + 1) * count // size) > 0

  @property
  def element_spec(self) -> types.Sample:
    size = len(self._is_demonstrated)
    spec = tree.map_structure(
      lambda spec: tf.TensorSpec([size, *spec.shape[1:]], spec.dtype),
      self.replayed.element_spec,
    )
    return spec._replace(is_demonstration=tf.TensorSpec([size], tf.bool))

  def __next__(self) -> types.Sample:
    mixed = tree.map_structure(
      self._mix, next(self.replayed), next(self._demonstrated)
    )
    mixed.keys[self._is_demonstrated] = _NO_KEY
    return mixed._replace(is_demonstration=self._is_demonstrated)

  def _mix(self, replayed: types.Array, demonstrated: np.ndarray) -> np.ndarray:
    mixed = np.empty(
      [len(self._is_demonstrated), *demonstrated.shape[1:]], demonstrated.dtype
    )
    mixed[~self._is_demonstrated] = replayed
    mixed[self._is_demonstrated] = demonstrated
    return mixed

  def restore(self, state: dict | None) -> None:
    """Restores `transport.sampler_state()` if it is of the same data."""
    self.is_resumed = state is not None and self.transport.restore_sampler(
      state
    )

  def reset_timeout(self) -> None:
    self.replayed.reset_timeout()

  def close(self) -> None:
    self.replayed.close()
