"""Conformance tests of tensor environments, to be inherited.

    class TestMine(conformance.TensorEnvironmentConformance):
      def make_environment(self): ...

pytest, or unittest with `unittest.TestCase` as a further base, runs them.
Batches of a `tensor.Factory` have the contract of all batches:
`repertory.environments.conformance.EnvironmentBatchConformance`.
"""

import functools
from collections.abc import Callable, Collection
from typing import Any

import dm_env
import numpy as np
import tensorflow as tf
import tree

from repertory.environments import conformance
from repertory.environments.tensor import environment as environment_lib


class TensorEnvironmentConformance:
  """Tests of the contract of `tensor.TensorEnvironment`.

  Attributes:
    batch_size: Number of rows; their seeds are 0, 1, 2, ... Kernels process
      eight rows at once and the remaining ones singly, so take more than eight.
    num_steps: Number of random steps to take.
    end_discounts: Discounts of the LAST timesteps within these steps: 0 for
      termination, 1 for truncation. None allows any, but at least one episode
      must end.
    is_random: Whether different seeds give different episodes.
    xla_tolerance: Tolerance of floats after one step with XLA, compared with
      the step without XLA: absolute below 1, relative above. Integers must be
      equal.
    row_tolerance: Tolerance of floats of a single row, compared with the same
      row of a batch, in the same way. 0 unless XLA always compiles the
      environment, because its results may depend on the number of rows.
  """

  batch_size = 11
  num_steps = 60
  end_discounts: Collection[float] | None = None
  is_random = True
  xla_tolerance = 0.0
  row_tolerance = 0.0

  def make_environment(self) -> environment_lib.TensorEnvironment:
    """Makes the environment; the same object each time avoids recompilation."""
    raise NotImplementedError('Override make_environment.')

  def draw_actions(self) -> list[Any]:
    """Draws `num_steps` random actions `[B, ...]`, with a fixed seed."""
    random = np.random.default_rng(0)
    spec = self.make_environment().action_spec()

    def draw(leaf):
      drawn = conformance.draw_actions(leaf, self.batch_size, random)
      return tf.constant(drawn)

    return [tree.map_structure(draw, spec) for _ in range(self.num_steps)]

  def play(self) -> list[dm_env.TimeStep]:
    """Returns the timesteps from `reset` on, as arrays; steps as a graph."""
    environment = self.make_environment()
    step = _graph(environment.step)
    state, timestep = _graph(environment.reset)(self.start_state())
    timesteps = [timestep]
    for action in self.draw_actions():
      state, timestep = step(state, action)
      timesteps.append(timestep)
    return tree.map_structure(lambda tensor: tensor.numpy(), timesteps)

  def start_state(self, seeds: Collection[int] | None = None) -> Any:
    """Returns the state before the first reset."""
    seeds = range(self.batch_size) if seeds is None else seeds
    counters = environment_lib.initial_counters(list(seeds))
    return self.make_environment().initial_state(counters)

  def test_timesteps(self):
    environment, timesteps = self.make_environment(), self.play()
    for leaf in tree.flatten([environment.action_spec(), timesteps]):
      assert leaf.dtype.itemsize <= 4, f'{leaf} is not of single precision.'
    for timestep in timesteps:
      conformance.check_form(environment, timestep)
      conformance.check_masks(environment, timestep)
    conformance.check_ends(timesteps, self.end_discounts)
    if self.is_random:
      first, _ = environment.reset(self.start_state())
      stepped, _ = environment.step(first, self.draw_actions()[0])
      second, _ = environment.reset(stepped)
      assert not np.array_equal(first.counters, second.counters), (
        'An episode must draw other numbers than the abandoned one.'
      )
      assert not conformance.same(
        conformance.take(timesteps, 0), conformance.take(timesteps, 1)
      ), 'Rows of different counters must differ.'

  def test_rows_know_nothing_of_each_other(self):
    state = self.start_state()
    step = _graph(self.make_environment().step)
    for i, action in enumerate(self.draw_actions()):
      together = step(state, action)
      # Three rows per step, cyclically.
      for row in ((3 * i + j) % self.batch_size for j in range(3)):
        one = slice(row, row + 1)
        before = conformance.take(state, one) if i else self.start_state([row])
        self._check_close(
          step(before, conformance.take(action, one)),
          conformance.take(together, one),
          self.row_tolerance,
          f'At step {i}, row {row} alone must equal the row of the batch',
        )
      state, _ = together

  def test_xla(self):
    environment, state = self.make_environment(), self.start_state()
    step = _graph(environment.step)
    compiled = _function(environment.step, jit_compile=True)
    for i, action in enumerate(self.draw_actions()):
      expected = step(state, action)
      self._check_close(
        compiled(state, action),
        expected,
        self.xla_tolerance,
        f'At step {i}, the result with XLA must equal the one without',
      )
      state, _ = expected

  def test_loop_does_what_its_steps_do(self):
    environment, expected = self.make_environment(), self.play()[1:]
    actions = tree.map_structure(
      lambda *leaves: np.stack(leaves), *self.draw_actions()
    )
    expected = tree.map_structure(lambda *leaves: np.stack(leaves), *expected)
    start = environment.reset(self.start_state())

    def loop(start):
      return tf.scan(
        lambda before, action: environment.step(before[0], action),
        actions,
        start,
      )[1]

    for is_compiled in (False,) if self.xla_tolerance else (False, True):
      looped = _function(loop, jit_compile=is_compiled)(start)
      assert conformance.same(looped, expected), (
        'A loop must equal its single steps, also if XLA compiles it.'
      )

  def _check_close(self, found, expected, tolerance, what):
    """Asserts that nests of tensors are close."""
    pairs = zip(*map(tf.nest.flatten, (found, expected)), strict=True)
    for one, other in ((a.numpy(), b.numpy()) for a, b in pairs):
      is_close = np.array_equal(one, other)
      if other.dtype.kind == 'f' and tolerance:
        scale = tolerance * np.maximum(1, np.abs(other))
        is_close = (np.abs(one - other) <= scale).all()
      assert is_close, f'{what}, within {tolerance}: {other}; got {one}.'


# Like the compiled loops.
_function = functools.partial(tf.function, autograph=False)


@functools.lru_cache(maxsize=32)
def _graph(method: Callable) -> Callable:
  """Returns the graph of an environment's method, cached per object."""
  return _function(method)
