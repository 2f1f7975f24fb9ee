"""Color frames of Atari games, from replicas of the games.

ALE's vector environment only shows small gray screens, one per action. To be
rendered, each game is therefore replayed frame by frame with the same seed and
the same actions, which is deterministic.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from repertory.environments.adapters import extras
from repertory.environments.rendering import rendering

# Frame rate of ALE, in all games.
FRAMES_PER_SECOND = 60


class Replicas:
  """Replicas of the games of a vector environment."""

  def __init__(
    self, rom: str, settings: Mapping[str, Any], seeds: Sequence[int]
  ):
    """Loads the games.

    Args:
      rom: Name of the ROM file.
      settings: A value for each of `atari.OPTIONS`.
      seeds: Seeds of the vector environment, one per game.
    """
    self._replicas = [_Replica(rom, settings, seed) for seed in seeds]

  def reset(
    self, info: Mapping[str, np.ndarray], slots: Sequence[int] | None = None
  ) -> None:
    """Restarts games.

    Args:
      info: The info that the vector environment's `reset` returned.
      slots: Slots of the games to restart; None for all.
    """
    frames = info['episode_frame_number']
    for slot in range(len(self._replicas)) if slots is None else slots:
      self._replicas[slot].reset(int(frames[slot]))

  def step(
    self,
    actions: np.ndarray,
    rewards: np.ndarray,
    truncated: np.ndarray,
    info: Mapping[str, np.ndarray],
  ) -> None:
    """Repeats a `step` of the vector environment in each replica.

    Args:
      actions: `[B]`, the actions of the step.
      rewards: `[B]`, the rewards of the step.
      truncated: `[B]`, whether each game was truncated.
      info: The info of the step.

    Raises:
      RuntimeError: If a replica deviates from its game.
    """
    frames, lives = info['episode_frame_number'], info['lives']
    for slot, replica in enumerate(self._replicas):
      if replica.is_over:
        replica.reset(int(frames[slot]))
        continue
      reward = replica.step(int(actions[slot]))
      found = (reward, *replica.where())
      expected = (float(rewards[slot]), int(frames[slot]), int(lives[slot]))
      if found != expected:
        raise RuntimeError(
          'the replica of a game must match the game, but reward, frame '
          f'and lives are {expected} in the game and {found} in the replica'
        )
      replica.is_over |= bool(truncated[slot])

  def render(self, slots: Sequence[int]) -> rendering.Pictures:
    """Returns the frames of the last step, `[T, H, W, 3]` of each slot."""
    return [np.stack(self._replicas[slot].frames) for slot in slots]


class _Replica:
  """Replica of one game.

  Attributes:
    frames: Frames of the last step.
    is_over: Whether the next step restarts the game.
  """

  def __init__(self, rom: str, settings: Mapping[str, Any], seed: int):
    ale_py = extras.import_extra('ale_py', 'atari')
    self._ale = ale = ale_py.ALEInterface()
    ale.setFloat('repeat_action_probability', settings['sticky_actions'])
    ale.setInt('random_seed', int(seed))
    ale.loadROM(ale_py.roms.get_rom_path(rom))
    is_full = settings['full_actions']
    self._actions = (
      ale.getLegalActionSet() if is_full else ale.getMinimalActionSet()
    )
    self._frame_skip = settings['frame_skip']
    self.frames: list[np.ndarray] = []
    self.is_over = True

  def reset(self, num_noops: int) -> None:
    self._ale.reset_game()
    for _ in range(num_noops):
      self._ale.act(self._actions[0])
    self.frames = [self._ale.getScreenRGB()]
    self.is_over = False

  def step(self, action: int) -> float:
    """Repeats an action for `frame_skip` frames; returns the reward."""
    reward = 0.0
    self.frames = []
    while len(self.frames) < self._frame_skip and not self.is_over:
      reward += self._ale.act(self._actions[action])
      self.frames.append(self._ale.getScreenRGB())
      self.is_over = self._ale.game_over()
    return reward

  def where(self) -> tuple[int, int]:
    """Returns the frame number within the game, and the remaining lives."""
    return self._ale.getEpisodeFrameNumber(), self._ale.lives()
