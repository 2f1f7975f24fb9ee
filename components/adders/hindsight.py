"""Hindsight experience replay: transitions relabeled with achieved goals."""

import dataclasses
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import dm_env
import numpy as np
import tree

from repertory.components import specs, types
from repertory.components.adders import transition
from repertory.components.config import choices
from repertory.components.config.settings import SettingError
from repertory.components.replay import writers

_FIRST, _LAST = int(dm_env.StepType.FIRST), int(dm_env.StepType.LAST)
ACHIEVED, DESIRED = 'achieved_goal', 'desired_goal'
Strategy: TypeAlias = Literal['future', 'final', 'episode']


class GoalOutcomes(NamedTuple):
  """Outcomes of goals.

  Attributes:
    compute: Maps achieved and desired goals, nests of `[N, ...]`, to rewards
      `[N]` and whether the episode terminates, bool `[N]`, or None to keep the
      discounts.
    close: Releases the resources.
  """

  compute: Callable[[Any, Any], tuple[np.ndarray, np.ndarray | None]]
  close: Callable[[], None] = lambda: None


@dataclasses.dataclass(frozen=True, kw_only=True)
class HindsightTransitions(transition.Transitions):
  """Single-step transitions, and copies with other goals (HER).

  Observations are dictionaries with `achieved_goal` and `desired_goal`. At the
  end of an episode each of its transitions gets k copies, whose desired goal is
  one that the episode achieved, and whose reward is that of the new goal. See
  https://arxiv.org/abs/1707.01495, section 4.5.

  Attributes:
    num_goals: k, copies of each transition, at least 1.
    strategy: Source of the goals: states after the transition ('future'), the
      last state ('final'), or any state of the episode ('episode').
    make_outcomes: Makes the function of the goals' outcomes, in the process
      that adds the transitions; None until a run sets it.
    seed: Seeds the choice of goals.
  """

  num_goals: int
  strategy: Strategy = 'future'
  make_outcomes: Callable[[], GoalOutcomes] | None = None
  seed: int = 0

  def __post_init__(self):
    super().__post_init__()
    if self.n_step != 1:
      raise ValueError(f'n_step must be 1 with goals, got {self.n_step}.')
    if self.num_goals < 1:
      raise ValueError(f'num_goals must be at least 1, got {self.num_goals}.')
    choices.check('strategy', self.strategy, get_args(Strategy))

  @property
  def of_data(self) -> transition.Transitions:
    fields = dataclasses.fields(transition.Transitions)
    return transition.Transitions(
      **{field.name: getattr(self, field.name) for field in fields}
    )

  @property
  def max_items_per_step(self) -> int:
    return 1 + 2 * self.num_goals

  def max_items(self, num_steps: int) -> int:
    return num_steps * (1 + self.num_goals)

  def signature(self, spec: specs.EnvironmentSpec) -> types.Transition:
    check_goals(spec)
    return super().signature(spec)

  def make_adder(
    self, writer: writers.Writer, batch_size: int
  ) -> 'HindsightAdder':
    return HindsightAdder(writer, batch_size, self)


def check_goals(spec: specs.EnvironmentSpec) -> None:
  """Raises a SettingError unless observations have goals of equal specs."""
  observations = spec.observations
  if not isinstance(observations, Mapping) or not {
    ACHIEVED, DESIRED,
  } <= set(observations):  # fmt: skip
    raise SettingError(
      'hindsight_goals',
      f'must be 0 for observations that are not a dictionary with {ACHIEVED!r} '
      f'and {DESIRED!r}, got {observations!r}. Name the entries so, or leave '
      'the setting out.',
    )
  shapes = [
    [(leaf.shape, leaf.dtype) for leaf in tree.flatten(observations[name])]
    for name in (ACHIEVED, DESIRED)
  ]
  if shapes[0] != shapes[1]:
    raise SettingError(
      'hindsight_goals',
      f'must be 0 unless {ACHIEVED!r} and {DESIRED!r} have equal shapes and '
      f'dtypes, got {observations!r}.',
    )


class HindsightAdder(transition.TransitionAdder):
  """Adds transitions as described by `HindsightTransitions`.

  Copies of an episode are written in the steps after its end, at most 2k of
  each slot in a step, so that a long episode does not write all at once. Those
  that are left when the adder is closed are dropped, like open episodes.
  """

  def __init__(
    self,
    writer: writers.Writer,
    batch_size: int,
    transitions: HindsightTransitions,
  ):
    """Opens the writer, for `batch_size` slots."""
    if transitions.make_outcomes is None:
      raise ValueError('make_outcomes must be set, got None.')
    super().__init__(writer, batch_size, transitions)
    self._outcomes = transitions.make_outcomes()
    self._num_goals = transitions.num_goals
    self._strategy = transitions.strategy
    self._seed, self._random = transitions.seed, np.random.default_rng(0)
    self._before: types.Nest = ()
    # Transitions of all slots, and the index of each slot's first one.
    self._open: list[types.Transition] = []
    self._starts = np.zeros([batch_size], np.int64)
    # Copies to write, leaves of `[N, ...]`.
    self._copies: list[list[np.ndarray]] = []

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    super().add_first(timestep)
    self._before = _copy(timestep.observation)
    # Adders of other environments draw other numbers.
    start = b''.join(map(np.ndarray.tobytes, tree.flatten(self._before)))
    self._random = np.random.default_rng([self._seed, zlib.crc32(start)])

  def reset(self) -> None:
    super().reset()
    self._open, self._starts = [], np.zeros_like(self._starts)

  def put(self, action, next_timestep, extras=()):
    super().put(action, next_timestep, extras)
    after = _copy(next_timestep.observation)
    self._open.append(
      types.Transition(
        self._before,
        _copy(action),
        np.array(next_timestep.reward),
        np.array(next_timestep.discount),
        after,
        _copy(extras),
      )
    )
    self._before = after
    for slot, step_type in enumerate(next_timestep.step_type.tolist()):
      if step_type == _LAST:
        self._copies.append(self._relabel(slot))
      if step_type in (_FIRST, _LAST):
        self._starts[slot] = len(self._open)
    num_closed = int(self._starts.min())
    self._open = self._open[num_closed:]
    self._starts -= num_closed
    self._write_copies(2 * self._num_goals * self._batch_size)

  def _relabel(self, slot: int) -> list[np.ndarray]:
    """Returns the leaves `[N, ...]` of the copies of a slot's episode."""
    episode = [
      tree.map_structure(lambda leaf: leaf[slot], step)
      for step in self._open[self._starts[slot] :]
    ]
    steps = tree.map_structure(lambda *rows: np.stack(rows), *episode)
    length = len(episode)
    times = np.repeat(np.arange(length), self._num_goals)  # [N]
    first = times if self._strategy == 'future' else np.zeros_like(times)
    chosen = self._random.integers(first, length)
    if self._strategy == 'final':
      chosen = np.full_like(times, length - 1)
    copies = tree.map_structure(lambda leaf: leaf[times], steps)
    goals = tree.map_structure(
      lambda leaf: leaf[chosen], steps.next_observation[ACHIEVED]
    )
    rewards, terminated = self._outcomes.compute(
      copies.next_observation[ACHIEVED], goals
    )
    rewards = np.asarray(rewards, copies.reward.dtype)
    if self._max_abs_reward is not None:
      rewards = np.clip(rewards, -self._max_abs_reward, self._max_abs_reward)
    discounts = copies.discount
    if terminated is not None:
      discounts = np.where(terminated, 0, 1).astype(discounts.dtype)
    copies = copies._replace(
      observation={**copies.observation, DESIRED: goals},
      reward=rewards,
      discount=discounts,
      next_observation={**copies.next_observation, DESIRED: goals},
    )
    return tree.flatten(copies)

  def _write_copies(self, number: int) -> None:
    """Writes at most a number of copies, the oldest first."""
    while self._copies and number > 0:
      leaves = self._copies[0]
      self._writer.put([leaf[:number] for leaf in leaves])
      rest = [leaf[number:] for leaf in leaves]
      number -= len(leaves[0])
      self._copies[:1] = [rest] if len(rest[0]) else []

  def save(self) -> dict[str, Any]:
    return {n: part for n, part in super().save().items() if n != '_outcomes'}

  def close(self) -> None:
    self._outcomes.close()
    super().close()


def _copy(nest: types.Nest) -> types.Nest:
  return tree.map_structure(np.array, nest)
