"""Adder of n-step transitions."""

import dataclasses

import dm_env
import numpy as np
import tree

from repertory.components import specs, types
from repertory.components.adders import adder, rings
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
    return specs.tensor_spec(
      types.Transition(
        observation=spec.observations,
        action=spec.actions,
        reward=spec.rewards,
        discount=spec.discounts,
        next_observation=spec.observations,
        extras=self.extras_spec,
      )
    )

  def make_adder(
    self, writer: writers.Writer, batch_size: int
  ) -> 'TransitionAdder':
    return TransitionAdder(writer, batch_size, self)


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
    signature = writer.table.signature
    self._num_before = len(tree.flatten(signature[:2]))
    # The latest steps: observation, action and extras; rewards and discounts.
    self._starts = rings.Rings(n_step)
    self._outcomes = rings.Rings(n_step)
    self._now = 0
    self._observation: list[np.ndarray] = []
    # Time of the first step whose transition has not been written.
    self._origins = np.zeros([batch_size], np.int64)

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    self._now += 1
    self._observation = self._keep(timestep.observation)
    self.reset()

  def reset(self) -> None:
    self._origins[:] = self._now

  def put(
    self,
    action: types.Nest,
    next_timestep: dm_env.TimeStep,
    extras: types.Nest = (),
  ) -> None:
    before = [*self._observation, *self._keep(action, len(self._observation))]
    after = len(before) + 2 + len(self._observation)
    self._starts.write(self._now, [*before, *self._keep(extras, after)])
    reward = next_timestep.reward
    if self._max_abs_reward is not None:
      reward = np.clip(reward, -self._max_abs_reward, self._max_abs_reward)
    self._outcomes.write(self._now, [reward, next_timestep.discount])
    self._now += 1
    self._observation = self._keep(next_timestep.observation)
    step_types = next_timestep.step_type
    self._origins[step_types == _FIRST] = self._now  # The action was ignored.
    lengths = self._now - self._origins
    full = (lengths == self._n_step).nonzero()[0]
    last = step_types == _LAST
    if full.size:
      self._write(full, self._n_step)
    if np.count_nonzero(last):  # With few slots, faster than `last.any()`.
      longest = min(int(lengths[last].max()), self._n_step - 1)
      for length in range(longest, 0, -1):
        self._write((last & (lengths >= length)).nonzero()[0], length)
    self._origins[full] += 1

  def _keep(self, nest: types.Nest, start: int = 0) -> list[np.ndarray]:
    """Returns copies of leaves, and references to large ones.

    `start` is the index in a transition of the first leaf.
    """
    leaves = dict(enumerate(tree.flatten(nest), start))
    large = {i: leaves[i] for i in self._writer.shared if i in leaves}
    if large:
      leaves.update(self._writer.keep(large))
    # Copies, because the environment may overwrite its arrays.
    return [
      leaf if i in large else np.array(leaf) for i, leaf in leaves.items()
    ]

  def _write(self, slots: np.ndarray, length: int) -> None:
    """Writes the transitions of the last `length` steps of some slots."""
    starts = self._starts.at(slots, self._now - length)
    self._writer.put(
      [
        *starts[: self._num_before],
        *self._outcome(slots, length),
        *(leaf[slots] for leaf in self._observation),
        *starts[self._num_before :],
      ]
    )

  def _outcome(self, slots: np.ndarray, length: int) -> list[np.ndarray]:
    """Sums the last k steps: Σ_i γ^i r_i Π_{j<i} d_j, γ^(k-1) Π_j d_j."""
    start = self._now - length
    reward, discount = self._outcomes.at(slots, start)
    total, product = reward.astype(np.float64), discount.astype(np.float64)
    for time in range(start + 1, self._now):
      next_reward, next_discount = self._outcomes.at(slots, time)
      product = product * self._discount
      total = total + product * next_reward
      product = product * next_discount
    return [total.astype(reward.dtype), product.astype(discount.dtype)]
