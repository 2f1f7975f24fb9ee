"""MinAtar: miniature Atari games on boards of 10 by 10."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments.adapters import extras
from repertory.environments.batches import vector_batch
from repertory.environments.registry import name_options
from repertory.environments.rendering import drawing, rendering
from repertory.environments.values import argument_checks

GAMES = ('asterix', 'breakout', 'freeway', 'seaquest', 'space_invaders')

OPTIONS = (
  name_options.Option(
    'sticky_actions',
    0.1,
    'Probability that a step repeats the last action',
    maximum=1,
  ),
  name_options.Option(
    'full_actions', True, 'Whether to use all six actions in each game'
  ),
  name_options.Option(
    'ramping', True, 'Whether difficulty increases over time'
  ),
)


class MinAtarSource(vector_batch.VectorSource):
  """Games as a `vector_batch.VectorSource`, stepped one after the other.

  An observation is a board, `[10, 10, C]` of 0 and 1. Episodes end with
  discount 0 only; the only time limit is Freeway's own, which counts as a
  termination. Rendered frames, uint8 `[10, 10, 3]`, have the colors and the
  rate of MinAtar's display. See https://arxiv.org/abs/1903.03176.
  """

  render_fps = 20

  def __init__(
    self, game: str, settings: Mapping[str, Any], seeds: Sequence[int]
  ):
    """Creates one of `GAMES`, with a value for each of `OPTIONS`."""
    argument_checks.check_known('game', game, GAMES)
    minatar = extras.import_extra('minatar', 'minatar')
    self._games = []
    for seed in seeds:
      made = minatar.Environment(
        game, settings['sticky_actions'], settings['ramping']
      )
      made.seed(argument_checks.fold_seed(seed))
      self._games.append(made)
    # Methods of the inner games, to save a call per step.
    self._states = [game.env.state for game in self._games]
    first = self._games[0]
    self._actions = list(range(first.num_actions()))
    if not settings['full_actions']:
      self._actions = list(first.minimal_action_set())
    self._shape = tuple(first.state_shape())
    super().__init__(
      len(seeds),
      specs.BoundedArray(self._shape, np.float32, 0, 1, 'board'),
      specs.DiscreteArray(len(self._actions), np.int32, 'action'),
    )

  def reset(self) -> np.ndarray:
    size = self.batch_size
    ended = np.ones(size, np.bool_)
    return self.step(np.zeros(size, np.int32), ended).observation

  def step(
    self, actions: np.ndarray, ended: np.ndarray | None
  ) -> vector_batch.StepResult:
    size = self.batch_size
    # The dtype of the games: casting the whole batch at once is faster.
    boards = np.empty((size, *self._shape), np.bool_)
    rewards, last = [0.0] * size, [False] * size
    restarts = [False] * size if ended is None else ended.tolist()
    parts = self._games, self._states, actions.tolist(), restarts
    slots = zip(range(size), *parts)
    for slot, game, state, action, again in slots:
      if again:
        game.reset()
      else:
        rewards[slot], last[slot] = game.act(self._actions[action])
      boards[slot] = state()
    over = np.array(last, np.bool_) if True in last else None  # [B]
    return vector_batch.StepResult(
      boards.astype(np.float32),
      np.array(rewards, np.float32),
      None if over is None else ~over,
      over,
    )

  def render(self, slots: Sequence[int]) -> rendering.Frames:
    return [drawing.draw_channels(self._states[slot]()) for slot in slots]
