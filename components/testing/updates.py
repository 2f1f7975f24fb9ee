"""Conformance tests of updates."""

import unittest
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from repertory.components import interfaces, types
from repertory.components.testing import comparing


class UpdateConformance:
  """The contract of `interfaces.Update`.

  Attributes:
    num_updates: Number of updates after which every variable has changed.
  """

  num_updates = 2

  def make_network(self) -> Any:
    """Creates the network, with the same initial variables each time."""
    raise NotImplementedError

  def make_update(self, network: Any) -> interfaces.Update:
    """Creates the update of the network."""
    raise NotImplementedError

  def make_sample(self, seed: int) -> types.Sample:
    """Returns a batch `[B]` as from replay.

    If its items are sequences, all steps are valid: the tests mask some.
    """
    raise NotImplementedError

  def start(self) -> interfaces.Update:
    """Creates an update and runs it on some batches."""
    update = self.make_update(self.make_network())
    for seed in range(self.num_updates):
      update(self.make_sample(seed))
    return update

  def copy(self, update: interfaces.Update) -> interfaces.Update:
    """Creates another update with the same variables, as a checkpoint does."""
    other = self.make_update(self.make_network())
    if [v.shape for v in other.variables] != [
      v.shape for v in update.variables
    ]:
      other(self.make_sample(0))  # Some create variables when they first run.
    for ours, theirs in zip(update.variables, other.variables, strict=True):
      theirs.assign(ours)
    return other

  def test_learns(self):
    update = self.make_update(self.make_network())
    update(self.make_sample(0))
    before = [v.numpy() for v in update.exports['policy']]
    for seed in range(1, 1 + self.num_updates):
      update(self.make_sample(seed))
    after = [v.numpy() for v in update.exports['policy']]
    assert any((a != b).any() for a, b in zip(after, before)), (
      f'{self.num_updates} updates must change some policy variables.'
    )

  def test_its_variables_exist_beforehand(self):
    network = self.make_network()
    made = {v.ref() for v in network.variables}
    update = self.make_update(network)
    late = [v for v in network.variables if v.ref() not in made]
    interfaces.refuse_late(late, 'make_update')
    interfaces.call_update(update, self.make_sample(0))

  def test_exports_variables_of_the_network(self):
    network = self.make_network()
    exported = {v.ref() for v in self.make_update(network).exports['policy']}
    assert exported, "exports['policy'] must not be empty."
    assert exported <= {v.ref() for v in network.variables}, (
      "exports['policy'] must be variables of the network itself, with which "
      'policies act.'
    )

  def test_exports_belong_to_its_variables(self):
    update = self.start()
    owned = {v.ref() for v in update.variables}
    for name, variables in update.exports.items():
      assert owned.issuperset(v.ref() for v in variables), (
        f'exports[{name!r}] must be in `variables`, or checkpoints lack it.'
      )

  def test_metrics_are_finite_scalars(self):
    result = self.start()(self.make_sample(9))
    assert isinstance(result, interfaces.UpdateResult)
    for name, value in result.metrics.items():
      array = np.asarray(value)
      assert array.shape == (), f'{name!r} must be a scalar, got {array.shape}.'
      assert np.isfinite(array), f'{name!r} must be finite, got {array}.'

  def test_priorities_are_of_the_items(self):
    sample = self.make_sample(9)
    priorities = self.start()(sample).priorities
    if priorities is None:
      raise unittest.SkipTest('The update computes no priorities.')
    array = np.asarray(priorities)
    assert array.shape == np.shape(sample.keys), (
      f'Priorities must have the shape of the items, {np.shape(sample.keys)}, '
      f'got {array.shape}.'
    )
    assert np.isfinite(array).all() and (array >= 0).all(), (
      f'Priorities must be finite and at least 0, or Reverb hangs; got {array}.'
    )

  def test_all_it_knows_is_in_its_variables(self):
    update = self.start()
    other = self.copy(update)
    sample = self.make_sample(9)
    comparing.assert_same(
      other(sample),
      update(sample),
      'Updates with the same variables must return the same: state outside of '
      'variables is lost when a run is resumed.',
    )
    comparing.assert_same(
      list(other.variables),
      list(update.variables),
      'Updates with the same variables must change them in the same way.',
    )

  def test_compiles(self):
    update = self.start()
    other, sample = self.copy(update), self.make_sample(9)
    expected = update(sample)
    compiled = tf.function(other, autograph=False)
    comparing.assert_compiles_alike(compiled.get_concrete_function(sample))
    found = compiled(sample)
    message = 'A compiled update must have the same results as in eager mode.'
    comparing.assert_close(found, expected, message)
    comparing.assert_close(
      list(other.variables), list(update.variables), message
    )

  def test_padding_counts_for_nothing(self):
    sample = self.make_sample(9)
    if not isinstance(sample.data, types.Sequence):
      return  # Only sequences have padding.
    update = self.start()
    other = self.copy(update)
    ours, theirs = (
      sample._replace(data=_pad(sample.data, seed)) for seed in (0, 1)
    )
    message = 'Steps whose mask is false must have no influence.'
    comparing.assert_close(other(theirs), update(ours), message)
    comparing.assert_close(
      list(other.variables), list(update.variables), message
    )


def _pad(data: types.Sequence, seed: int) -> types.Sequence:
  """Masks the second half of row 0 and fills it with random numbers."""
  num_steps = data.mask.shape[1]
  half = num_steps // 2
  random = np.random.default_rng(seed)

  def spoil(array):
    array = np.array(array)
    # The last observation belongs to the valid steps.
    start = half + array.shape[1] - num_steps
    if array.dtype.kind == 'f':
      shape = array[0, start:].shape
      array[0, start:] = random.uniform(-50, 50, shape).astype(array.dtype)
    return tf.constant(array)

  mask = np.array(data.mask)
  mask[0, half:] = False
  return data._replace(
    mask=tf.constant(mask),
    **{
      name: tree.map_structure(spoil, getattr(data, name))
      for name in ('observation', 'action', 'reward', 'discount', 'extras')
    },
  )
