"""Checks of updates."""

import unittest
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from repertory.components import programs, types
from repertory.components.conformance import comparing


class UpdateConformance:
  """The contract of `programs.Update`.

  Attributes:
    num_updates: After so many, all that is ever changed has been.
  """

  num_updates = 2

  def make_network(self) -> Any:
    """Makes the network; its variables have the same values each time."""
    raise NotImplementedError

  def make_update(self, network: Any) -> programs.Update:
    """Makes the update of the network."""
    raise NotImplementedError

  def make_sample(self, seed: int) -> types.Sample:
    """Returns a batch `[B]` as replay gives it.

    If its items are sequences, all steps happened: the checks mask some.
    """
    raise NotImplementedError

  def start(self) -> programs.Update:
    """Makes an update whose variables have been changed by some batches."""
    update = self.make_update(self.make_network())
    for seed in range(self.num_updates):
      update(self.make_sample(seed))
    return update

  def copy(self, update: programs.Update) -> programs.Update:
    """Makes another one and gives it the variables, as a checkpoint does."""
    other = self.make_update(self.make_network())
    if [v.shape for v in other.variables] != [
      v.shape for v in update.variables
    ]:
      other(self.make_sample(0))  # Some make variables when they first run.
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
      f'{self.num_updates} updates changed none of the policy variables.'
    )

  def test_its_variables_exist_beforehand(self):
    network = self.make_network()
    made = {id(variable) for variable in network.variables}
    update = self.make_update(network)
    late = [v for v in network.variables if id(v) not in made]
    programs.refuse_late(late, 'make_update')
    programs.call_update(update, self.make_sample(0))

  def test_exports_variables_of_the_network(self):
    network = self.make_network()
    exported = self.make_update(network).exports['policy']
    ours = {id(variable) for variable in network.variables}
    assert len(exported) > 0, "exports['policy'] must not be empty."
    assert all(id(variable) in ours for variable in exported), (
      "exports['policy'] must be variables of the network itself: others are "
      'not what policies act with.'
    )

  def test_exports_belong_to_its_variables(self):
    update = self.start()
    owned = {id(variable) for variable in update.variables}
    for name, variables in update.exports.items():
      assert all(id(variable) in owned for variable in variables), (
        f'exports[{name!r}] must be among `variables`, or no checkpoint has it.'
      )

  def test_metrics_are_finite_scalars(self):
    result = self.start()(self.make_sample(9))
    assert isinstance(result, programs.UpdateResult)
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
      f'There must be a priority for each item; got {array.shape} for '
      f'{np.shape(sample.keys)}.'
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
      'Another update with the same variables must do the same: what is kept '
      'elsewhere is lost when a run is resumed.',
    )
    comparing.assert_same(
      list(other.variables),
      list(update.variables),
      'Another update with the same variables must change them alike.',
    )

  def test_compiles(self):
    update = self.start()
    other, sample = self.copy(update), self.make_sample(9)
    expected = update(sample)
    compiled = tf.function(other, autograph=False)
    comparing.assert_compiles_alike(compiled.get_concrete_function(sample))
    found = compiled(sample)
    message = 'An update must do in a compiled program what it does eagerly.'
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
  """Lets the second half of row 0 be padding, with any numbers in it."""
  num_steps = data.mask.shape[1]
  half = num_steps // 2
  random = np.random.default_rng(seed)

  def spoil(array):
    array = np.array(array)
    # Of the observations the one at which the steps end is a real one.
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
