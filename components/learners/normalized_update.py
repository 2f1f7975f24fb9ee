"""Update that normalizes the observations of its batches."""

import tensorflow as tf
import tree

from repertory.components import interfaces, networks, types


class NormalizedUpdate(interfaces.Update):
  """Normalizes the observations of a batch, and calls an update with it.

  Batches are of transitions or sequences, whose padding does not count in the
  statistics. The first batch is added to them before the update, or it would
  not be normalized. Later ones are added after it, so that its first gradient
  step starts from the policy that acted.
  """

  def __init__(
    self, update: interfaces.Update, network: 'networks.NormalizedNetwork'
  ):
    """Takes an update of `network.network`, and exports `network`."""
    super().__init__(network)
    self._update = update
    self._normalizer = network.normalizer

  @property
  def exports(self):
    return {**self._update.exports, **super().exports}

  @property
  def learned(self):
    return {**self._update.learned, **super().exports}

  def __call__(self, sample: types.Sample) -> interfaces.UpdateResult:
    data, normalizer = sample.data, self._normalizer
    if isinstance(data, types.Sequence):
      mask = data.mask  # [B, T]
      steps = tree.map_structure(lambda x: x[:, :-1], data.observation)
      names = ['observation']
    else:
      mask = tf.ones_like(data.reward, tf.bool)[None]  # [1, B]
      steps = tree.map_structure(lambda x: x[None], data.observation)
      names = ['observation', 'next_observation']

    def add():
      normalizer.update(steps, mask)

    is_first = tf.logical_not(normalizer.is_initialized)
    tf.cond(is_first, add, lambda: None)
    normalized = {name: normalizer(getattr(data, name)) for name in names}
    sample = sample._replace(data=data._replace(**normalized))
    result = interfaces.call_update(self._update, sample)
    tf.cond(is_first, lambda: None, add)
    return result
