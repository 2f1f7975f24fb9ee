"""Checks of policies and updates, as tests that your own ones inherit.

    class TestMyPolicy(conformance.PolicyConformance):
      def make_policy(self): ...

pytest, or unittest with `unittest.TestCase` as a further base, runs them.
"""

import unittest
from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.components import programs, specs, types

_FIRST, _MID, _LAST = (int(step_type) for step_type in dm_env.StepType)


class PolicyConformance:
  """The contract of `programs.Policy`.

  Attributes:
    num_environments: Environment ids are below it; at least 3.
    num_steps: How long the histories are.
  """

  num_environments = 5
  num_steps = 4

  def make_spec(self) -> specs.EnvironmentSpec:
    """Returns the spec of the environments to act in."""
    raise NotImplementedError

  def make_policy(self) -> programs.Policy:
    """Makes a policy; what it acts with is the same each time."""
    raise NotImplementedError

  @property
  def all_ids(self) -> Sequence[int]:
    return range(self.num_environments)

  def observe(self, seed: int, size: int | None = None) -> types.Nest:
    """Returns observations `[B, ...]` as the spec allows."""
    size = self.num_environments if size is None else size
    random = np.random.default_rng(seed)
    spec = self.make_spec().observations
    return tree.map_structure(lambda leaf: _draw(leaf, size, random), spec)

  def act(
    self, policy, state, seed: int, step_type: int | Sequence[int] = _MID
  ) -> programs.PolicyOutput:
    """Acts upon the observations of that seed."""
    step_types = np.broadcast_to(
      np.asarray(step_type, np.int32), [self.num_environments]
    )
    return policy.act(self.observe(seed), tf.constant(step_types), state)

  def live(self, policy, seed: int) -> types.Nest:
    """Returns the state after some steps; seeds have other observations."""
    state = policy.initial_state(self.all_ids)
    for t in range(self.num_steps):
      state = self.act(policy, state, 100 * seed + t, _MID if t else _FIRST)[2]
    return state

  def test_state_follows_from_the_environment_ids_alone(self):
    policy = self.make_policy()
    state = policy.initial_state(self.all_ids)
    for leaf in tree.flatten(state):
      assert leaf.shape[:1] == [self.num_environments], (
        'Every leaf of the state must have a row for each environment; got '
        f'{leaf.shape}.'
      )
    ids = [2, 0]
    _assert_same(
      policy.initial_state(ids),
      _rows(state, ids),
      f'The state of environments {ids} must be the same in any company.',
    )

  def test_actions_fit_the_spec(self):
    policy, spec = self.make_policy(), self.make_spec().actions
    state = policy.initial_state(self.all_ids)
    for t in range(self.num_steps):
      output = self.act(policy, state, t)
      tree.assert_same_structure(spec, output.action)
      for leaf, array in zip(tree.flatten(spec), tree.flatten(output.action)):
        for row in np.asarray(array):
          leaf.validate(row)
      state = output.state

  def test_state_keeps_its_form(self):
    policy = self.make_policy()
    before = policy.initial_state(self.all_ids)
    after = self.live(policy, 1)
    tree.assert_same_structure(before, after)
    forms = [
      [(leaf.shape.as_list(), leaf.dtype) for leaf in tree.flatten(state)]
      for state in (before, after)
    ]
    assert forms[0] == forms[1], (
      f'Shapes and dtypes of the state must stay {forms[0]}; got {forms[1]}.'
    )

  def test_same_state_same_output(self):
    policy = self.make_policy()
    state = self.live(policy, 1)
    _assert_same(
      self.act(policy, state, 2),
      self.act(policy, state, 2),
      'What a policy does must follow from its inputs alone: random numbers '
      'come from counters in the state.',
    )

  def test_rows_are_independent(self):
    policy = self.make_policy()
    state, other = self.live(policy, 1), self.live(policy, 2)
    observation, elsewhere = self.observe(3), self.observe(4)
    step_types = tf.fill([self.num_environments], _MID)
    whole = policy.act(observation, step_types, state)
    for row in (0, self.num_environments - 1):

      def mix(ours, theirs, row=row):
        chosen = [i == row for i in self.all_ids]
        shape = [-1, *[1] * (len(ours.shape) - 1)]
        return tf.where(np.reshape(chosen, shape), ours, theirs)

      mixed = policy.act(
        tree.map_structure(mix, observation, elsewhere),
        step_types,
        tree.map_structure(mix, state, other),
      )
      alone = policy.act(
        _rows(observation, [row]), step_types[:1], _rows(state, [row])
      )
      message = f'Row {row} of the output must depend on that row alone'
      expected = _rows(whole, [row])
      _assert_same(_rows(mixed, [row]), expected, f'{message}, not on others.')
      _assert_close(alone, expected, f'{message}, not on how many there are.')

  def test_ended_rows_keep_their_state(self):
    policy = self.make_policy()
    state = self.live(policy, 1)
    step_types = [_MID] * self.num_environments
    step_types[1] = _LAST
    after = self.act(policy, state, 2, step_types).state
    _assert_same(
      _rows(after, [1]),
      _rows(state, [1]),
      'A row at LAST needs no action: its state must stay as it is.',
    )
    others = [i for i in self.all_ids if i != 1]
    _assert_same(
      _rows(after, others),
      _rows(self.act(policy, state, 2).state, others),
      'A row at LAST must leave the others alone.',
    )

  def test_episodes_begin_without_memory(self):
    policy = self.make_policy()
    states = [self.live(policy, seed) for seed in (1, 2)]
    step_types = [_MID] * self.num_environments
    step_types[1] = _FIRST
    one, other = (self.act(policy, s, 3, step_types) for s in states)
    _assert_same(
      _rows(one, [1]),
      _rows(other, [1]),
      'After FIRST, nothing may depend on the observations before it.',
    )
    others = [i for i in self.all_ids if i != 1]
    _assert_same(
      _rows(one, others),
      _rows(self.act(policy, states[0], 3), others),
      'Where no episode begins, nothing may be forgotten.',
    )

  def test_compiles(self):
    policy = self.make_policy()
    state = self.live(policy, 1)
    arguments = (
      self.observe(2),
      tf.fill([self.num_environments], _MID),
      state,
    )
    _assert_close(
      tf.function(policy.act, autograph=False)(*arguments),
      policy.act(*arguments),
      'A policy must do in a compiled program what it does eagerly.',
    )


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
    _assert_same(
      other(sample),
      update(sample),
      'Another update with the same variables must do the same: what is kept '
      'elsewhere is lost when a run is resumed.',
    )
    _assert_same(
      list(other.variables),
      list(update.variables),
      'Another update with the same variables must change them alike.',
    )

  def test_compiles(self):
    update = self.start()
    other, sample = self.copy(update), self.make_sample(9)
    expected = update(sample)
    found = tf.function(other, autograph=False)(sample)
    message = 'An update must do in a compiled program what it does eagerly.'
    _assert_close(found, expected, message)
    _assert_close(list(other.variables), list(update.variables), message)

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
    _assert_close(other(theirs), update(ours), message)
    _assert_close(list(other.variables), list(update.variables), message)


def _draw(spec, size: int, random: np.random.Generator) -> tf.Tensor:
  """Returns values `[size, ...]` as an array spec allows."""
  shape, dtype = (size, *spec.shape), np.dtype(spec.dtype)
  if dtype.kind == 'b':
    return tf.constant(random.integers(0, 2, shape).astype(bool))
  low, high = (-1, 1) if dtype.kind == 'f' else (0, 1)
  low, high = (
    np.clip(getattr(spec, name, bound), -1e6, 1e6)
    for name, bound in (('minimum', low), ('maximum', high))
  )
  if dtype.kind == 'f':
    return tf.constant(random.uniform(low, high, shape).astype(dtype))
  low, high = low.astype(np.int64), high.astype(np.int64)
  return tf.constant(random.integers(low, high + 1, shape).astype(dtype))


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


def _rows(nest: types.Nest, rows: Sequence[int]) -> types.Nest:
  return tree.map_structure(lambda leaf: tf.gather(leaf, rows), nest)


def _assert_same(found: types.Nest, expected: types.Nest, message: str) -> None:
  _compare(found, expected, message, np.testing.assert_array_equal)


def _assert_close(
  found: types.Nest, expected: types.Nest, message: str
) -> None:
  """Allows for sums that are taken in another order."""
  _compare(
    found,
    expected,
    message,
    lambda x, y, m: np.testing.assert_allclose(x, y, 1e-3, 1e-5, err_msg=m),
  )


def _compare(found, expected, message, compare) -> None:
  tree.assert_same_structure(found, expected)
  flat = zip(tree.flatten_with_path(found), tree.flatten(expected))
  for (path, x), y in flat:
    if x is not None:
      place = '/'.join(map(str, path))
      compare(np.asarray(x), np.asarray(y), f'{message} ({place})')
