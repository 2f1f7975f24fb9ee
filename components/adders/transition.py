"""Adder of n-step transitions."""

import dataclasses
from collections.abc import Sequence

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
    self._layout = _Layout(writer.table.signature, writer.shared)
    # Small leaves of the latest steps: observation, action and extras; and
    # rewards and discounts.
    self._starts = rings.Rings(n_step)
    self._outcomes = rings.Rings(n_step)
    # References to large leaves, by time and slot: observations, and actions
    # with extras.
    self._seen = _references(n_step + 1, batch_size)
    self._chosen = _references(n_step + 1, batch_size)
    self._now = 0
    self._observation: list[np.ndarray] = []
    # Time of the first step whose transition has not been written.
    self._origins = np.zeros([batch_size], np.int64)

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    self._now += 1
    self._observe(timestep.observation, None)
    self.reset()

  def reset(self) -> None:
    self._origins[:] = self._now

  def put(
    self,
    action: types.Nest,
    next_timestep: dm_env.TimeStep,
    extras: types.Nest = (),
  ) -> None:
    layout = self._layout
    choice = [*tree.flatten(action), *tree.flatten(extras)]
    self._starts.write(
      self._now,
      [
        *(self._observation[i] for i in layout.small_observations),
        *(choice[i] for i in layout.small_choices),
      ],
    )
    reward = next_timestep.reward
    if self._max_abs_reward is not None:
      reward = np.clip(reward, -self._max_abs_reward, self._max_abs_reward)
    self._outcomes.write(self._now, [reward, next_timestep.discount])
    self._now += 1
    self._observe(next_timestep.observation, choice)
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

  def _observe(self, observation: types.Nest, choice: list | None) -> None:
    """Stores an observation, and writes large leaves, also those of the action.

    `choice` has the leaves of action and extras; None if there was no step.
    """
    # A copy, because the environment may overwrite its arrays.
    self._observation = [np.array(leaf) for leaf in tree.flatten(observation)]
    layout, size = self._layout, self._n_step + 1
    if not layout.has_large:
      return
    num_seen = len(layout.large_observations)
    large = [self._observation[i] for i in layout.large_observations]
    for slot in range(self._batch_size):
      references = self._writer.keep(
        [
          *(leaf[slot] for leaf in large),
          *(choice and choice[i][slot] for i in layout.large_choices),
        ]
      )
      self._seen[self._now % size][slot] = references[:num_seen]
      self._chosen[(self._now - 1) % size][slot] = references[num_seen:]

  def _write(self, slots: np.ndarray, length: int) -> None:
    """Writes the transitions of the last `length` steps of some slots."""
    layout, size = self._layout, self._n_step + 1
    start = self._now - length
    leaves = layout.place(
      self._starts.at(slots, start),
      self._outcome(slots, length),
      [self._observation[i][slots] for i in layout.small_observations],
    )
    if not layout.has_large:
      self._writer.put(leaves)
      return
    num_actions = layout.num_large_actions
    before, chosen = self._seen[start % size], self._chosen[start % size]
    after = self._seen[self._now % size]
    references = [
      [
        *before[slot],
        *chosen[slot][:num_actions],
        *after[slot],
        *chosen[slot][num_actions:],
      ]
      for slot in slots
    ]
    self._writer.put(leaves, references)

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


class _Layout:
  """Positions of leaves in a transition, by size."""

  def __init__(self, signature: types.Transition, large: Sequence[int]):
    num_observations = len(tree.flatten(signature.observation))
    num_actions = len(tree.flatten(signature.action))
    self._num_leaves = len(tree.flatten(signature))
    observations = range(num_observations)
    # Indices of the leaves of actions and extras.
    choices = [
      *range(num_observations, num_observations + num_actions),
      *range(2 * num_observations + num_actions + 2, self._num_leaves),
    ]
    is_large = set(large)
    self.large_observations = [i for i in observations if i in is_large]
    self.small_observations = [i for i in observations if i not in is_large]
    self.large_choices = [
      i for i, leaf in enumerate(choices) if leaf in is_large
    ]
    self.small_choices = [
      i for i, leaf in enumerate(choices) if leaf not in is_large
    ]
    self.num_large_actions = sum(i < num_actions for i in self.large_choices)
    self.has_large = bool(self.large_observations or self.large_choices)
    self._starts = [
      *self.small_observations,
      *(choices[i] for i in self.small_choices),
    ]
    self._outcome = num_observations + num_actions
    self._ends = [self._outcome + 2 + i for i in self.small_observations]

  def place(self, starts: list, outcome: list, ends: list) -> list:
    """Arranges small leaves in the order of a transition; large are None."""
    leaves: list = [None] * self._num_leaves
    places = [*self._starts, self._outcome, self._outcome + 1, *self._ends]
    for place, leaf in zip(places, [*starts, *outcome, *ends], strict=True):
      leaves[place] = leaf
    return leaves


def _references(size: int, batch_size: int) -> list[list]:
  return [[() for _ in range(batch_size)] for _ in range(size)]
