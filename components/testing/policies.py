"""Conformance tests of policies."""

from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.components import interfaces, specs, types
from repertory.components.runtime import compilation
from repertory.components.testing import comparing

_FIRST, _MID, _LAST = (int(step_type) for step_type in dm_env.StepType)


class PolicyConformance:
  """The contract of `interfaces.Policy`.

  Attributes:
    num_environments: Number of environment ids, at least 3.
    num_steps: Length of the histories.
  """

  num_environments = 5
  num_steps = 4

  def make_spec(self) -> specs.EnvironmentSpec:
    """Returns the spec of the environments."""
    raise NotImplementedError

  def make_policy(self) -> interfaces.Policy:
    """Creates a policy, with the same variables and seeds each time."""
    raise NotImplementedError

  @property
  def all_ids(self) -> Sequence[int]:
    return range(self.num_environments)

  def observe(self, seed: int) -> types.Nest:
    """Returns random observations `[B, ...]` within the spec."""
    random = np.random.default_rng(seed)
    return tree.map_structure(
      lambda leaf: tf.constant(draw(leaf, self.num_environments, random)),
      self.make_spec().observations,
    )

  def act(
    self,
    policy: interfaces.Policy,
    state: types.Nest,
    seed: int,
    step_type: int | Sequence[int] = _MID,
  ) -> interfaces.PolicyOutput:
    """Runs the policy on the observations of a seed."""
    step_types = np.broadcast_to(
      np.asarray(step_type, np.int32), [self.num_environments]
    )
    return policy.act(self.observe(seed), tf.constant(step_types), state)

  def live(self, policy: interfaces.Policy, seed: int) -> types.Nest:
    """Returns the state after some steps; observations depend on the seed."""
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
    comparing.assert_same(
      policy.initial_state(ids),
      comparing.rows(state, ids),
      f'The state of environments {ids} must not depend on other rows.',
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
    before, after = (
      compilation.specs_of(state)
      for state in (policy.initial_state(self.all_ids), self.live(policy, 1))
    )
    assert before == after, (
      f'Shapes and dtypes of the state must stay {before}; got {after}.'
    )

  def test_same_state_same_output(self):
    policy = self.make_policy()
    state = self.live(policy, 1)
    comparing.assert_same(
      self.act(policy, state, 2),
      self.act(policy, state, 2),
      'The output of a policy must depend on its inputs only. Draw random '
      'numbers from counters in the state.',
    )

  def test_rows_are_independent(self):
    policy = self.make_policy()
    step_types = tf.fill([self.num_environments], _MID)
    ours = self.observe(3), step_types, self.live(policy, 1)
    theirs = self.observe(4), step_types, self.live(policy, 2)
    both = tree.map_structure(lambda *parts: tf.concat(parts, 0), ours, theirs)
    whole = policy.act(*ours)
    for row in (0, self.num_environments - 1):
      message = f'Row {row} of the output must depend on that row only'
      expected = comparing.rows(whole, [row])
      mixed = [i + (i != row) * self.num_environments for i in self.all_ids]
      comparing.assert_same(
        comparing.rows(policy.act(*comparing.rows(both, mixed)), [row]),
        expected,
        f'{message}, not on others.',
      )
      comparing.assert_close(
        policy.act(*comparing.rows(both, [row])),
        expected,
        f'{message}, not on the number of rows.',
      )

  def test_ended_rows_keep_their_state(self):
    policy = self.make_policy()
    state = self.live(policy, 1)
    step_types = [_MID] * self.num_environments
    step_types[1] = _LAST
    after = self.act(policy, state, 2, step_types).state
    comparing.assert_same(
      comparing.rows(after, [1]),
      comparing.rows(state, [1]),
      'A row at LAST needs no action: its state must stay as it is.',
    )
    others = [i for i in self.all_ids if i != 1]
    comparing.assert_same(
      comparing.rows(after, others),
      comparing.rows(self.act(policy, state, 2).state, others),
      'A row at LAST must not affect other rows.',
    )

  def test_episodes_begin_without_memory(self):
    policy = self.make_policy()
    states = [self.live(policy, seed) for seed in (1, 2)]
    step_types = [_MID] * self.num_environments
    step_types[1] = _FIRST
    one, other = (self.act(policy, s, 3, step_types) for s in states)
    comparing.assert_same(
      comparing.rows(one, [1]),
      comparing.rows(other, [1]),
      'After FIRST, nothing may depend on earlier observations.',
    )
    others = [i for i in self.all_ids if i != 1]
    comparing.assert_same(
      comparing.rows(one, others),
      comparing.rows(self.act(policy, states[0], 3), others),
      'The state of a row must only be reset where an episode begins.',
    )

  def test_compiles_for_any_number_of_rows(self):
    policy = self.make_policy()
    whole = (
      self.observe(2),
      tf.fill([self.num_environments], _MID),
      self.live(policy, 1),
    )
    compiled = tf.function(policy.act, autograph=False).get_concrete_function(
      *tree.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), whole
      )
    )
    comparing.assert_compiles_alike(compiled)
    for rows in (self.all_ids, [1, 0]):
      arguments = comparing.rows(whole, rows)
      comparing.assert_close(
        compiled(*arguments),
        policy.act(*arguments),
        'A compiled policy must return the same as in eager mode, for any '
        'number of rows in one trace: exported policies have no fixed batch '
        'size.',
      )


def draw(spec: Any, size: int, random: np.random.Generator) -> np.ndarray:
  """Returns random values `[size, ...]` within an array spec."""
  shape, dtype = (size, *spec.shape), np.dtype(spec.dtype)
  if dtype.kind == 'b':
    return random.integers(0, 2, shape).astype(bool)
  low, high = (-1, 1) if dtype.kind == 'f' else (0, 1)
  low, high = (
    np.clip(getattr(spec, name, bound), -1e6, 1e6)
    for name, bound in (('minimum', low), ('maximum', high))
  )
  if dtype.kind == 'f':
    return random.uniform(low, high, shape).astype(dtype)
  low, high = low.astype(np.int64), high.astype(np.int64)
  return random.integers(low, high + 1, shape).astype(dtype)
