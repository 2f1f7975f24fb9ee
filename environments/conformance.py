"""Conformance tests of environment batches, to be inherited.

    class TestMyBatch(conformance.EnvironmentBatchConformance):
      def make_environment(self, seed): ...

pytest, or unittest with `unittest.TestCase` as a further base, runs them. For a
single environment, dm_env has `EnvironmentTestMixin`.
"""

import contextlib
import itertools
import unittest
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import dm_env
import numpy as np
import tree

from repertory.environments.batches import batch, mask_check

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)


class EnvironmentBatchConformance:
  """Tests of the contract of `batch.EnvironmentBatch`.

  Override `make_environment`, or `make_batch`, or both. With both, each slot is
  compared with a single environment of the same seed.

  Attributes:
    batch_size: Number of slots; their seeds are 0, 1, 2, ...
    num_steps: Number of random steps to take.
    end_discounts: Discounts of the LAST timesteps within these steps: 0 for
      termination; the discount of any other step for truncation. None allows
      any, but at least one episode must end.
    is_random: Whether different seeds give different episodes.
  """

  batch_size = 3
  num_steps = 60
  end_discounts: Collection[float] | None = None
  is_random = True

  def make_environment(self, seed: int) -> dm_env.Environment | None:
    """Makes a single environment of this seed; None to skip the comparison."""
    return None

  def make_batch(self, seeds: Sequence[int]) -> Any:
    """Makes the batch; by default from single environments."""
    environments = [self.make_environment(seed) for seed in seeds]
    if None in environments:
      raise NotImplementedError('Override make_environment or make_batch.')
    return batch.EnvironmentBatch([e for e in environments if e is not None])

  @contextlib.contextmanager
  def opened(self, first_seed: int = 0) -> Iterator[Any]:
    """Yields a batch and closes it."""
    seeds = range(first_seed, first_seed + self.batch_size)
    with contextlib.closing(self.make_batch(list(seeds))) as environments:
      yield environments

  def actions(self, environments: Any) -> Iterator[Any]:
    """Draws `num_steps` random actions `[B, ...]`, with a fixed seed."""
    random = np.random.default_rng(0)
    spec = environments.action_spec()
    for _ in range(self.num_steps):
      yield tree.map_structure(
        lambda leaf: draw_actions(leaf, self.batch_size, random), spec
      )

  def play(
    self, first_seed: int = 0, *, spoils: bool = False
  ) -> list[dm_env.TimeStep]:
    """Returns the timesteps of a fresh batch, after checks.

    `spoils` is whether to give invalid actions to slots that have ended.
    """
    with self.opened(first_seed) as environments:
      timesteps = [environments.reset()]
      copies = tree.map_structure(np.copy, timesteps)
      for actions in self.actions(environments):
        replace_masked(environments, timesteps[-1], actions)
        if spoils:
          ended = timesteps[-1].step_type == _LAST
          for array in tree.flatten(actions):
            array[ended] = 100
        timesteps.append(environments.step(actions))
        copies.append(tree.map_structure(np.copy, timesteps[-1]))
      assert same(timesteps, copies), (
        'A step must not change arrays that were returned before.'
      )
      for timestep in timesteps:
        check_form(environments, timestep)
    return timesteps

  def test_timesteps(self):
    check_ends(self.play(), self.end_discounts)

  def test_calls(self):
    with self.opened() as environments:
      actions = next(self.actions(environments))
      stepped = environments.step(actions)
      replace_masked(environments, stepped, actions)
      environments.step(actions)
      again = environments.reset()
      check_form(environments, again)
      assert (again.step_type == _FIRST).all(), (
        'A reset must restart all slots.'
      )
      try:
        environments.step(take(actions, slice(None, -1)))
      except ValueError:
        pass
      else:
        raise AssertionError('Too few actions must be a ValueError.')
      environments.close()  # It may be closed twice.
    with self.opened() as environments:
      assert same(stepped, environments.reset()), (
        'The first step of a fresh batch must be a reset, with any actions.'
      )

  def test_seeds(self):
    timesteps = self.play()
    assert same(timesteps, self.play()), (
      'Batches of equal seeds must behave alike.'
    )
    if self.is_random:
      assert not same(take(timesteps, 0), take(timesteps, 1)), (
        'Slots of different seeds must differ.'
      )
      assert not same(timesteps, self.play(first_seed=100)), (
        'Different seeds must play differently.'
      )

  def test_actions_of_ended_slots_are_ignored(self):
    assert same(self.play(), self.play(spoils=True)), (
      'FIRST must follow LAST, with any action.'
    )

  def test_slots_do_what_environments_do_alone(self):
    alone: list[Any] = [
      self.make_environment(seed) for seed in range(self.batch_size)
    ]
    if None in alone:
      raise unittest.SkipTest('No single environment to compare with.')
    with self.opened() as environments:
      assert environments.batch_size == self.batch_size
      for name in ('observation', 'action', 'reward', 'discount'):
        ours, theirs = (
          getattr(e, f'{name}_spec')() for e in (environments, alone[0])
        )
        assert ours == theirs, (
          f'The {name} spec must be that of one environment, {theirs}; got '
          f'{ours}.'
        )
      timestep = environments.reset()
      expected = [environment.reset() for environment in alone]
      for actions in self.actions(environments):
        replace_masked(environments, timestep, actions)
        for slot in range(self.batch_size):
          _check_slot(take(timestep, slot), expected[slot], slot)
          expected[slot] = alone[slot].step(take(actions, slot))
        timestep = environments.step(actions)
    for environment in alone:
      environment.close()


def check_form(environments: Any, timestep: dm_env.TimeStep) -> None:
  """Compares shapes, dtypes and values of a timestep `[B]` with the specs."""
  step_types = timestep.step_type
  assert (step_types.dtype, step_types.ndim) == (np.int32, 1), (
    f'step_type must be int32 [B]; got {step_types.dtype} {step_types.shape}.'
  )
  spec = environments.observation_spec()
  tree.assert_same_structure(spec, timestep.observation)
  for leaf in tree.flatten(timestep[1:]):
    assert len(leaf) == len(step_types), 'All arrays must have a leading [B].'
  for row, step_type in enumerate(step_types):
    environments.discount_spec().validate(timestep.discount[row])
    if step_type != _FIRST:
      environments.reward_spec().validate(timestep.reward[row])
    observation = take(timestep.observation, row)
    tree.map_structure(
      lambda leaf, array: leaf.validate(array), spec, observation
    )


def check_ends(
  timesteps: Sequence[dm_env.TimeStep],
  end_discounts: Collection[float] | None,
) -> None:
  """Checks starts and ends of episodes, from a reset of the batch on."""
  found = set()
  assert (timesteps[0].step_type == _FIRST).all()
  for before, after in itertools.pairwise(timesteps):
    np.testing.assert_array_equal(
      after.step_type == _FIRST,
      before.step_type == _LAST,
      'Slots are at FIRST after LAST, and only then.',
    )
    found |= set(after.discount[after.step_type == _LAST].tolist())
  for timestep in timesteps:
    first = timestep.step_type == _FIRST
    assert (timestep.reward[first] == 0).all(), 'At FIRST, the reward is 0.'
    assert (timestep.discount[first] == 1).all(), 'At FIRST, the discount is 1.'
  if end_discounts is None:
    assert found, f'No episode ended in {len(timesteps)} steps; take more.'
  else:
    expected = {float(np.float32(d)) for d in end_discounts}
    assert found == expected, (
      f'Episodes must end with the discounts {expected}; got {found}.'
    )


def _check_slot(row, expected, slot):
  reward, discount = expected.reward, expected.discount
  if expected.first():
    reward, discount = 0, 1
  found = (row.step_type, row.reward, row.discount)
  assert found == (expected.step_type, reward, discount), (
    f'Slot {slot} must match its single environment: step type, reward '
    f'and discount {(expected.step_type, reward, discount)}; got {found}.'
  )
  assert same(row.observation, expected.observation), (
    f'Slot {slot} must show the observation of its single environment.'
  )


def draw_actions(
  spec: Any, size: int, random: np.random.Generator
) -> np.ndarray:
  """Draws actions; unbounded ones in [-1, 1]."""
  shape = (size, *spec.shape)
  if spec.dtype.kind in 'iu':
    drawn = random.integers(spec.minimum, spec.maximum + 1, shape)
  else:
    low, high = getattr(spec, 'minimum', -1), getattr(spec, 'maximum', 1)
    is_bounded = np.isfinite(low).all() and np.isfinite(high).all()
    drawn = random.uniform(*((low, high) if is_bounded else (-1, 1)), shape)
  return drawn.astype(spec.dtype)


def check_masks(
  environments: Any, timestep: dm_env.TimeStep
) -> mask_check.MaskCheck | None:
  """Checks that action masks allow actions; returns them, if there are any."""
  spec = environments.observation_spec()
  if not isinstance(spec, Mapping) or mask_check.NAME not in spec:
    return None
  masks = mask_check.MaskCheck(spec, environments.action_spec())
  stuck = masks.observe(timestep.observation, timestep.step_type == _LAST)
  assert stuck is None, f'The action mask of slot {stuck} must allow an action.'
  return masks


def replace_masked(
  environments: Any, timestep: dm_env.TimeStep, actions: Any
) -> None:
  """Draws other actions, in place, where `actions` of a batch are masked."""
  masks = check_masks(environments, timestep)
  if masks is None:
    return
  random = np.random.default_rng(0)
  spec = tree.flatten(environments.action_spec())
  while found := masks.find_masked(actions, timestep.step_type == _LAST):
    slot, _ = found
    for leaf, leaf_spec in zip(tree.flatten(actions), spec):
      leaf[slot] = draw_actions(leaf_spec, 1, random)[0]


def take(nest: Any, rows: int | slice) -> Any:
  """Returns one or more rows of each leaf."""
  return tree.map_structure(lambda array: array[rows], nest)


def same(one: Any, other: Any) -> bool:
  """Returns whether the leaves of two nests are equal arrays."""
  pairs = zip(tree.flatten(one), tree.flatten(other), strict=True)
  return all(np.array_equal(a, b) for a, b in pairs)
