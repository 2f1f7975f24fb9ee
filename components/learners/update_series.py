"""Several consecutive updates in one learner step."""

import tensorflow as tf
import tree

from repertory.components import interfaces, types
from repertory.components.runtime import loops


class UpdateSeries(interfaces.Update):
  """Splits a large batch into several and runs an update on each, in order.

  The results are those of separate updates, except that all batches are sampled
  before the first one has changed priorities.
  """

  def __init__(self, update: interfaces.Update, num_updates: int):
    """Takes an update on a batch `[B]`, and K, the number of updates."""
    super().__init__()
    self._update = update
    self._num_updates = num_updates

  @property
  def exports(self):
    return self._update.exports

  @property
  def learned(self):
    return self._update.learned

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    """Updates from `[K · B]`; returns mean metrics and all priorities."""
    batches = tree.map_structure(self._divide, sample)  # [K, B, ...]

    def step(i, carry):
      batch = tree.map_structure(lambda leaf: tf.gather(leaf, i), batches)
      result = interfaces.call_update(self._update, batch)
      priorities = () if result.priorities is None else result.priorities
      return carry, (dict(result.metrics), priorities)

    _, (metrics, priorities) = loops.scan(step, (), self._num_updates)
    return interfaces.UpdateResult(
      {name: tf.reduce_mean(values) for name, values in metrics.items()},
      None if isinstance(priorities, tuple) else loops.merge_axes(priorities),
    )

  def _divide(self, leaf: tf.Tensor) -> tf.Tensor:
    leaf = tf.convert_to_tensor(leaf)
    size = leaf.shape[0] // self._num_updates
    return tf.reshape(leaf, [self._num_updates, size, *leaf.shape[1:]])
