"""Checks of tensor environments, as tests that your own ones inherit.

    class TestMine(conformance.TensorEnvironmentConformance):
      def make_environment(self): ...

pytest, or unittest with `unittest.TestCase` as a further base, runs them. The
batches that a `tensor.Factory` makes of it have the contract of all others:
`repertory.environments.conformance.EnvironmentBatchConformance`.
"""

import functools
import itertools
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.environments import conformance
from repertory.environments.tensor import environment as environment_lib

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)


class TensorEnvironmentConformance:
  """The contract of `tensor.TensorEnvironment`.

  Attributes:
    batch_size: Rows, whose seeds are 0, 1, 2, ... Of eight and more, kernels
      treat some together and some alone.
    num_steps: How many random steps to take.
    end_discounts: Discounts with which episodes end within these, 0 if they
      terminate and 1 if they are truncated; None for any, but there must be an
      end.
    is_random: Whether other seeds make a difference.
    xla_tolerance: How far a float may be from what it is without XLA after one
      step, as a part of 1 or of its own size if that is larger. Integers must
      be equal.
    row_tolerance: How far a float of a row alone may be, in the same way, from
      what it is in a batch. 0 unless XLA compiles the environment in any case:
      what it makes of a row may then hang on their number.
  """

  batch_size = 11
  num_steps = 60
  end_discounts: Collection[float] | None = None
  is_random = True
  xla_tolerance = 0.0
  row_tolerance = 0.0

  def make_environment(self) -> environment_lib.TensorEnvironment:
    """Makes the environment; the same object each time saves compiling it."""
    raise NotImplementedError('Override make_environment.')

  def draw_actions(self, seed: int = 0) -> list[Any]:
    """Draws `num_steps` actions `[B, ...]`, the same each time."""
    random = np.random.default_rng(seed)
    spec = self.make_environment().action_spec()

    def draw(leaf):
      return conformance.draw_actions(leaf, self.batch_size, random)

    return [tree.map_structure(draw, spec) for _ in range(self.num_steps)]

  def play(
    self,
    step: Callable | None = None,
    first_seed: int = 0,
    spoil: Callable[[Any, np.ndarray], Any] = lambda action, ended: action,
  ) -> list[dm_env.TimeStep]:
    """Returns the timesteps from `reset` on, as arrays.

    Args:
      step: Steps a state with an action; None for the graph of the
        environment's.
      first_seed: The first row's; the others have those that follow.
      spoil: Changes the actions; is told which rows have ended.
    """
    environment = self.make_environment()
    take_step: Callable = step or _graphs(environment).step
    seeds = range(first_seed, first_seed + self.batch_size)
    state, timestep = _graphs(environment).reset(
      environment.initial_state(environment_lib.initial_counters(seeds))
    )
    timesteps = [_to_arrays(timestep)]
    for action in self.draw_actions():
      action = spoil(action, timesteps[-1].step_type == _LAST)
      state, timestep = take_step(state, _to_tensors(action))
      timesteps.append(_to_arrays(timestep))
    return timesteps

  def start_state(self, seeds: Collection[int] | None = None) -> Any:
    """Returns the state of environments that were never reset."""
    seeds = range(self.batch_size) if seeds is None else seeds
    counters = environment_lib.initial_counters(list(seeds))
    return self.make_environment().initial_state(counters)

  def test_specs_are_of_single_precision(self):
    environment = self.make_environment()
    specs = [environment.observation_spec(), environment.action_spec()]
    for leaf in tree.flatten(specs):
      assert leaf.dtype.itemsize <= 4, f'{leaf} is not of single precision.'
    for name in ('reward', 'discount'):
      spec = getattr(environment, f'{name}_spec')()
      assert (spec.shape, spec.dtype) == ((), np.float32), (
        f'The {name} spec must be a float32 of shape (); got {spec}.'
      )

  def test_timesteps_fit_the_specs(self):
    environment = self.make_environment()
    spec = environment.observation_spec()
    for timestep in self.play():
      for name, dtype in zip(timestep._fields, (np.int32, *[np.float32] * 2)):
        array = getattr(timestep, name)
        assert (array.shape, array.dtype) == ((self.batch_size,), dtype), (
          f'{name} must be {np.dtype(dtype)} [{self.batch_size}]; got '
          f'{array.dtype} {array.shape}.'
        )
      goes_on = timestep.step_type != _FIRST
      for name in ('reward', 'discount'):
        for one in getattr(timestep, name)[goes_on]:
          getattr(environment, f'{name}_spec')().validate(one)
      tree.assert_same_structure(spec, timestep.observation)
      tree.map_structure(self._check_leaf, spec, timestep.observation)

  def _check_leaf(self, spec, array):
    assert array.shape == (self.batch_size, *spec.shape), (
      f'{spec.name} must have shape {(self.batch_size, *spec.shape)}; got '
      f'{array.shape}.'
    )
    for row in array:
      spec.validate(row)

  def test_restarts(self):
    timesteps, found = self.play(), set()
    assert (timesteps[0].step_type == _FIRST).all()
    for before, after in itertools.pairwise(timesteps):
      np.testing.assert_array_equal(
        after.step_type == _FIRST,
        before.step_type == _LAST,
        'Rows are at FIRST after LAST, and only then.',
      )
      last = after.step_type == _LAST
      found |= set(after.discount[last].tolist())
      assert (after.discount[~last] == 1).all(), (
        'Before the end, the discount is 1.'
      )
    for timestep in timesteps:
      assert (timestep.reward[timestep.step_type == _FIRST] == 0).all(), (
        'At FIRST, the reward is 0.'
      )
    if self.end_discounts is None:
      assert found, f'No episode ended in {self.num_steps} steps; take more.'
    else:
      assert found == set(self.end_discounts), (
        f'Episodes must end with the discounts {set(self.end_discounts)}; got '
        f'{found}.'
      )

  def test_first_step_is_a_reset(self):
    environment, state = self.make_environment(), self.start_state()
    action = _to_tensors(self.draw_actions()[0])
    stepped, reset = environment.step(state, action), environment.reset(state)
    assert _same(stepped, reset), (
      'The first step must be a reset, whatever the actions.'
    )

  def test_reset_begins_all_episodes(self):
    environment, state = self.make_environment(), self.start_state()
    before = None
    for action in self.draw_actions()[:2]:
      state, timestep = environment.reset(state)
      assert (timestep.step_type.numpy() == _FIRST).all()
      assert before is None or not np.array_equal(before, state.counters), (
        'An episode that was left must not come again.'
      )
      before = state.counters if self.is_random else None
      state, timestep = environment.step(state, _to_tensors(action))
      assert (timestep.step_type.numpy() != _FIRST).all()

  def test_actions_of_ended_rows_are_ignored(self):
    def spoil(action, ended):
      def replace(leaf):
        leaf = leaf.copy()
        leaf[ended] = 100
        return leaf

      return tree.map_structure(replace, action)

    assert _same(self.play(), self.play(spoil=spoil)), (
      'After LAST comes FIRST, whatever the action.'
    )

  def test_rows_know_nothing_of_each_other(self):
    state = self.start_state()
    step = _graphs(self.make_environment()).step
    for row in range(self.batch_size):
      assert _same(
        self.start_state([row]), _take(state, slice(row, row + 1))
      ), f'Row {row} must be at first alone what it is in a batch.'
    for i, action in enumerate(self.draw_actions()):
      action = _to_tensors(action)
      together = step(state, action)
      # Three rows a step; all get their turn again and again.
      for row in ((3 * i + j) % self.batch_size for j in range(3)):
        one = slice(row, row + 1)
        alone = step(_take(state, one), _take(action, one))
        self._check_close(
          alone,
          _take(together, one),
          self.row_tolerance,
          f'At step {i}, row {row} must do alone what it does in a batch',
        )
      state, _ = together

  def test_counters_decide(self):
    timesteps = self.play()
    assert _same(timesteps, self.play()), 'Equal counters, equal runs.'
    if self.is_random:
      rows = [[_take(t, row) for t in timesteps] for row in (0, 1)]
      assert not _same(*rows), 'Rows of other counters must differ.'
      assert not _same(timesteps, self.play(first_seed=100)), (
        'Other counters must make a difference.'
      )

  def test_graph_does_what_is_done_without(self):
    assert _same(self.play(), self.play(self.make_environment().step)), (
      'A graph must do what the same operations do one by one.'
    )

  def test_xla(self):
    environment, state = self.make_environment(), self.start_state()
    step = _graphs(environment).step
    compiled = _function(environment.step, jit_compile=True)
    for i, action in enumerate(self.draw_actions()):
      action = _to_tensors(action)
      found, expected = compiled(state, action), step(state, action)
      self._check_close(
        found,
        expected,
        self.xla_tolerance,
        f'At step {i}, XLA must do what is done without it',
      )
      state, _ = expected

  def _check_close(self, found, expected, tolerance, what):
    """Compares nests of tensors."""
    pairs = zip(*map(tf.nest.flatten, (found, expected)), strict=True)
    for one, other in ((a.numpy(), b.numpy()) for a, b in pairs):
      if other.dtype.kind == 'f' and tolerance:
        scale = tolerance * np.maximum(1, np.abs(other))
        is_close = (np.abs(one - other) <= scale).all()
      else:
        is_close = np.array_equal(one, other)
      assert is_close, f'{what}, within {tolerance}: {other}; got {one}.'

  def test_loop_does_what_its_steps_do(self):
    environment = self.make_environment()
    actions = _to_tensors(
      tree.map_structure(lambda *leaves: np.stack(leaves), *self.draw_actions())
    )
    state, timestep = environment.reset(self.start_state())

    def loop(state, timestep):
      def advance(i, state, timestep, arrays):
        action = tf.nest.map_structure(lambda leaf: leaf[i], actions)
        state, timestep = environment.step(state, action)
        arrays = tf.nest.map_structure(
          lambda array, leaf: array.write(i, leaf), arrays, timestep
        )
        return i + 1, state, timestep, arrays

      arrays = tf.nest.map_structure(
        lambda leaf: tf.TensorArray(
          leaf.dtype, self.num_steps, element_shape=leaf.shape
        ),
        timestep,
      )
      _, _, _, arrays = tf.while_loop(
        lambda i, *_: i < self.num_steps,
        advance,
        (0, state, timestep, arrays),
        maximum_iterations=self.num_steps,
      )
      return tf.nest.map_structure(lambda array: array.stack(), arrays)

    looped = _to_arrays(_function(loop)(state, timestep))
    for i, expected in enumerate(self.play()[1:]):
      assert _same(_take(looped, i), expected), (
        f'A loop must do what its steps do one by one; not so at step {i}.'
      )
    compiled = _function(loop, jit_compile=True)(state, timestep)
    if not self.xla_tolerance:
      assert _same(_to_arrays(compiled), looped), (
        'A loop must do the same when XLA compiles it.'
      )


# As what compiles environments does.
_function = functools.partial(tf.function, autograph=False)


class _Graphs(NamedTuple):
  reset: Callable
  step: Callable


@functools.lru_cache(maxsize=8)
def _graphs(environment: environment_lib.TensorEnvironment) -> _Graphs:
  """Returns the graphs of an environment, the same ones for the same object."""
  return _Graphs(_function(environment.reset), _function(environment.step))


def _to_tensors(action: Any) -> Any:
  return tree.map_structure(tf.constant, action)


def _to_arrays(nest: Any) -> Any:
  return tree.map_structure(lambda tensor: tensor.numpy(), nest)


def _take(nest: Any, rows: Any) -> Any:
  return tree.map_structure(lambda array: array[rows], nest)


def _same(one: Any, other: Any) -> bool:
  pairs = zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True)
  return all(np.array_equal(a, b) for a, b in pairs)
