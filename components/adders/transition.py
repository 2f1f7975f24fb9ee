"""Adder of n-step transitions."""

import collections
import dataclasses
from typing import NamedTuple

import dm_env
import numpy as np
import tree

from repertory.components import specs, types
from repertory.components.adders import adder
from repertory.components.replay import writers

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)


@dataclasses.dataclass(frozen=True)
class Transitions(adder.ItemSpec):
  """n-step transitions (o_t, a_t, Σ, Πd, o_{t+n}, extras_t).

  Each step starts one transition. In the last n − 1 steps of an episode,
  transitions are shorter and end with it. γ is applied between the rewards
  inside a transition; the learner applies it once more before bootstrapping.

  Attributes:
    n_step: n, steps per transition, at least 1.
    discount: γ, in [0, 1].
    max_abs_reward: Bound of clipped rewards. Clipping happens here because the
      learner sees only their sum; None disables it.
    extras_spec: Nest of array specs of the policy's extra outputs.
  """

  n_step: int
  discount: float
  max_abs_reward: float | None = None
  extras_spec: types.Nest = ()

  def __post_init__(self):
    if self.n_step < 1:
      raise ValueError(f'n_step must be at least 1, got {self.n_step}.')
    if not 0 <= self.discount <= 1:
      raise ValueError(f'discount must be in [0, 1], got {self.discount}.')
    if self.max_abs_reward is not None and not self.max_abs_reward > 0:
      raise ValueError(
        f'max_abs_reward must be positive or None, got {self.max_abs_reward}.'
      )

  @property
  def max_items_per_step(self) -> int:
    return self.n_step  # All open transitions.

  def max_items(self, num_steps: int) -> int:
    return num_steps

  def signature(self, spec: specs.EnvironmentSpec) -> types.Transition:
    return specs.tensor_spec(self._array_specs(spec))

  def num_frames(self, spec: specs.EnvironmentSpec) -> tuple[int, ...]:
    leaves = tree.flatten(self._array_specs(spec))
    return tuple(getattr(leaf, 'num_frames', 1) for leaf in leaves)

  def _array_specs(self, spec: specs.EnvironmentSpec) -> types.Transition:
    return types.Transition(
      observation=spec.observations,
      action=spec.actions,
      reward=spec.rewards,
      discount=spec.discounts,
      next_observation=spec.observations,
      extras=self.extras_spec,
    )

  def make_adder(
    self, writer: writers.Writer, batch_size: int
  ) -> 'TransitionAdder':
    return TransitionAdder(writer, batch_size, self)


class _Step(NamedTuple):
  """A step of all slots; the leaves of observation and action, and extras."""

  before: list[np.ndarray]
  reward: np.ndarray
  discount: np.ndarray
  extras: list[np.ndarray]


class TransitionAdder(adder.Adder):
  """Adds transitions as described by `Transitions`.

  Large leaves, such as images, are written once and shared by all transitions,
  if the writer supports it.
  """

  def __init__(
    self, writer: writers.Writer, batch_size: int, transitions: Transitions
  ):
    """Opens the writer, for `batch_size` slots."""
    n_step = transitions.n_step
    super().__init__(writer, batch_size, num_steps_alive=n_step + 2)
    self._n_step = n_step
    self._discount = transitions.discount
    self._max_abs_reward = transitions.max_abs_reward
    self._steps: collections.deque[_Step] = collections.deque(maxlen=n_step)
    self._observation: list[np.ndarray] = []
    # Number of the latest steps whose transitions have not been written.
    self._num_open = np.zeros([batch_size], np.int64)

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    self._observation = self._keep(timestep.observation)
    self.reset()

  def reset(self) -> None:
    self._num_open[:] = 0

  def put(self, action, next_timestep, extras=()):
    before = [*self._observation, *self._keep(action, len(self._observation))]
    after = len(before) + 2 + len(self._observation)
    reward = np.array(next_timestep.reward)
    if self._max_abs_reward is not None:
      reward = np.clip(reward, -self._max_abs_reward, self._max_abs_reward)
    discount = np.array(next_timestep.discount)
    self._steps.append(
      _Step(before, reward, discount, self._keep(extras, after))
    )
    self._observation = self._keep(next_timestep.observation)
    self._num_open += 1
    # Python is faster than NumPy for so few numbers.
    step_types = next_timestep.step_type.tolist()
    if _FIRST in step_types:  # The action was ignored.
      self._num_open[next_timestep.step_type == _FIRST] = 0
    full = (self._num_open == self._n_step).nonzero()[0]
    if full.size:
      self._write(full, self._n_step)
    if _LAST in step_types:
      last = next_timestep.step_type == _LAST
      longest = min(int(self._num_open[last].max()), self._n_step - 1)
      for length in range(longest, 0, -1):
        slots = (last & (self._num_open >= length)).nonzero()[0]
        self._write(slots, length)
    self._num_open[full] -= 1

  def _keep(self, nest: types.Nest, start: int = 0) -> list[np.ndarray]:
    """Returns copies of leaves, and references to large ones.

    `start` is the index in a transition of the first leaf.
    """
    leaves, shared = tree.flatten(nest), self._writer.shared
    large = {i: leaf for i, leaf in enumerate(leaves, start) if i in shared}
    kept = self._writer.keep(large) if large else {}
    # Copies, because the environment may overwrite its arrays.
    return [
      kept[i] if i in kept else np.array(leaf)
      for i, leaf in enumerate(leaves, start)
    ]

  def _write(self, slots: np.ndarray, length: int) -> None:
    """Writes the transitions of the last `length` steps of some slots."""
    first = self._steps[-length]
    leaves = [
      *first.before,
      *self._outcome(length),
      *self._observation,
      *first.extras,
    ]
    if len(slots) < self._batch_size:
      leaves = [leaf[slots] for leaf in leaves]
    self._writer.put(leaves)

  def _outcome(self, length: int) -> list[np.ndarray]:
    """Sums the last k steps: Σ_i γ^i r_i Π_{j<i} d_j, γ^(k-1) Π_j d_j."""
    _, reward, discount, _ = self._steps[-length]
    total, product = reward.astype(np.float64), discount.astype(np.float64)
    for i in range(1 - length, 0):
      product = product * self._discount
      total = total + product * self._steps[i].reward
      product = product * self._steps[i].discount
    return [total.astype(reward.dtype), product.astype(discount.dtype)]
