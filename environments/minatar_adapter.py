"""MinAtar: Atari games in miniature, on boards of 10 by 10."""

import operator
from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from repertory.environments import (
  close_names,
  extras,
  name_options,
  seeds,
)

GAMES = ('asterix', 'breakout', 'freeway', 'seaquest', 'space_invaders')

OPTIONS = (
  name_options.Option(
    'sticky_actions',
    0.1,
    'Probability that a step repeats the action before',
    maximum=1,
  ),
  name_options.Option(
    'full_actions', True, 'Whether actions without effect are kept, six in all'
  ),
  name_options.Option('ramping', True, 'Whether games grow harder with time'),
)


_ZERO, _ONE = np.float32(0), np.float32(1)


class MinAtar(dm_env.Environment):
  """One game, whose observation is its board, `[10, 10, C]` of 0 and 1.

  Episodes end with discount 0 only; there is no time limit but Freeway's own,
  which counts as an end. See https://arxiv.org/abs/1903.03176.
  """

  def __init__(self, game: str, settings: Mapping[str, Any], seed: int):
    """Makes the game.

    Args:
      game: One of `GAMES`.
      settings: A value for each of `OPTIONS`.
      seed: At least 0.

    Raises:
      ImportError: If MinAtar is not installed.
      ValueError: If there is no such game, or if the seed is not valid.
    """
    if game not in GAMES:
      raise ValueError(close_names.describe('`game`', game, GAMES))
    minatar = extras.import_extra('minatar', 'minatar')
    self._game = minatar.Environment(
      game, settings['sticky_actions'], settings['ramping']
    )
    self._game.seed(seeds.fold(seed))
    self._actions = list(range(self._game.num_actions()))
    if not settings['full_actions']:
      self._actions = list(self._game.minimal_action_set())
    self._shape = tuple(self._game.state_shape())
    self._ended = True

  def reset(self) -> dm_env.TimeStep:
    """Starts a game."""
    self._game.reset()
    self._ended = False
    return dm_env.restart(self._observe())

  def step(self, action: Any) -> dm_env.TimeStep:
    """Takes one step, or starts a game after the last one's end.

    Raises:
      ValueError: If the action is not an index of the action spec.
    """
    if self._ended:
      return self.reset()
    try:
      index = operator.index(action)
    except TypeError:
      index = -1
    if not 0 <= index < len(self._actions):
      raise ValueError(
        f'`action`: expected an integer from 0 to {len(self._actions) - 1},'
        f' got {action!r}.'
      )
    reward, self._ended = self._game.act(self._actions[index])
    return dm_env.TimeStep(
      dm_env.StepType.LAST if self._ended else dm_env.StepType.MID,
      np.float32(reward),
      _ZERO if self._ended else _ONE,
      self._observe(),
    )

  def observation_spec(self) -> specs.BoundedArray:
    """Returns the spec of the board, one channel for each kind of thing."""
    return specs.BoundedArray(self._shape, np.float32, 0, 1, 'board')

  def action_spec(self) -> specs.DiscreteArray:
    """Returns the spec of the action."""
    return specs.DiscreteArray(len(self._actions), np.int32, 'action')

  def reward_spec(self) -> specs.Array:
    """Returns the spec of the reward."""
    return specs.Array((), np.float32, 'reward')

  def discount_spec(self) -> specs.BoundedArray:
    """Returns the spec of the discount, 0 at the end and 1 before it."""
    return specs.BoundedArray((), np.float32, 0, 1, 'discount')

  def _observe(self) -> np.ndarray:
    return self._game.state().astype(np.float32)
