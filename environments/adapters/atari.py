"""Vectorized Atari games with the standard preprocessing (ALE)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dm_env import specs

from repertory.environments.adapters import (
  atari_replicas,
  extras,
  gymnasium_results,
)
from repertory.environments.batches import channels, vector_batch
from repertory.environments.batches import seeds as seeds_lib
from repertory.environments.registry import close_names, name_options
from repertory.environments.rendering import rendering

OPTIONS = (
  name_options.Option(
    'sticky_actions',
    0.0,
    'Probability that a frame repeats the last action (0.25 in Machado et'
    ' al. 2018)',
    maximum=1,
  ),
  name_options.Option(
    'life_loss', False, 'Whether a lost life ends the episode'
  ),
  name_options.Option(
    'full_actions', False, 'Whether each game has all 18 actions'
  ),
  name_options.Option(
    'noops', 30, 'Maximum number of no-ops at the start of a game', maximum=255
  ),
  name_options.Option('frame_skip', 4, 'Frames per action', 1, 60),
  name_options.Option('stack', 4, 'Stacked frames per observation', 1, 60),
  name_options.Option(
    'max_frames',
    108_000,
    'Maximum number of frames per game',
    1,
    2**31 - 1,
  ),
  name_options.Option(
    'threads', 0, 'Threads per batch; 0 for one per core', maximum=1024
  ),
)

# Settings of a source whose games are to be rendered.
FILMED = {'needs_picture': True}


def games() -> list[str]:
  """Returns the names of all games, such as 'SpaceInvaders'.

  Raises:
    ImportError: If ale-py is not installed.
  """
  return sorted(_roms())


class AtariSource(gymnasium_results.GymnasiumOutcomes):
  """B games in ALE's own vector environment, as a `vector_batch.VectorSource`.

  Each action is repeated for `frame_skip` frames. An observation is the stack
  of the last gray screens, `[84, 84, stack]` of uint8, the newest last. Each
  screen is the maximum of two successive frames, because sprites flicker; the
  stack of a new game is padded with black screens. Rewards are not clipped. See
  https://doi.org/10.1038/nature14236 and https://arxiv.org/abs/1709.06009.

  A slot does not depend on the other slots. With `life_loss`, a lost life ends
  the episode but not the game: the step that restarts the slot is one no-op,
  and the stack still holds the screens of the previous life.

  `render` returns every frame in color: see `atari_replicas`.
  """

  render_fps = atari_replicas.FRAMES_PER_SECOND

  def __init__(
    self, game: str, settings: Mapping[str, Any], seeds: Sequence[int]
  ):
    """Loads the game.

    Args:
      game: See `games`.
      settings: A value for each of `OPTIONS`, and `FILMED` to enable rendering.
      seeds: One per slot, at least 0; used for the first game only.

    Raises:
      ImportError: If ale-py or gymnasium is not installed.
      ValueError: If the game is unknown, or if a seed is not valid.
    """
    self._seeds: np.ndarray | None = np.array(
      [seeds_lib.fold(seed) for seed in seeds]
    )
    roms = _roms()
    close_names.check('game', game, sorted(roms))
    ale_py = extras.import_extra('ale_py', 'atari')
    # ALE logs its version at each start.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    self._env = ale_py.AtariVectorEnv(
      roms[game],
      len(seeds),
      num_threads=settings['threads'],
      max_num_frames_per_episode=settings['max_frames'],
      repeat_action_probability=settings['sticky_actions'],
      full_action_space=settings['full_actions'],
      stack_num=settings['stack'],
      frameskip=settings['frame_skip'],
      noop_max=settings['noops'],
      life_loss_info=settings['life_loss'],
      reward_clipping=False,
      use_fire_reset=False,
      autoreset_mode='NextStep',
    )
    self._replicas = None
    if settings.get('needs_picture'):
      self._replicas = atari_replicas.Replicas(
        roms[game], settings, self._seeds.tolist()
      )
    self._size = len(seeds)
    _, height, width = self._env.single_observation_space.shape
    self._observation_spec = specs.BoundedArray(
      (height, width, settings['stack']), np.uint8, 0, 255, 'screens'
    )
    self._action_spec = specs.DiscreteArray(
      int(self._env.single_action_space.n), np.int32, 'action'
    )
    self._life_loss = settings['life_loss']

  @property
  def batch_size(self) -> int:
    """The number of slots, B."""
    return self._size

  def observation_spec(self) -> specs.BoundedArray:
    """Returns the spec of the screens, `[84, 84, stack]`."""
    return self._observation_spec

  def action_spec(self) -> specs.DiscreteArray:
    """Returns the spec of the action, whose first value is the no-op."""
    return self._action_spec

  def reset(self) -> np.ndarray:
    """Starts all games; the first reset seeds them."""
    seeds, self._seeds = self._seeds, None
    screens, info = self._env.reset(seed=seeds)
    if self._replicas is not None:
      self._replicas.reset(info)
    return channels.move_last(screens)

  def step(
    self, actions: np.ndarray, ended: np.ndarray | None
  ) -> vector_batch.StepResult:
    """Steps each game; restarts it, or its next life, where it has ended."""
    screens, rewards, terminated, truncated, info = self._env.step(actions)
    if self._replicas is not None:
      self._replicas.step(actions, rewards, truncated, info)
    if self._life_loss and ended is not None:
      # The game may end during the no-op that begins the next life.
      over = ended & (terminated | truncated)
      if over.any():
        started, info = self._env.reset(options={'reset_mask': over})
        if self._replicas is not None:
          self._replicas.reset(info, np.flatnonzero(over).tolist())
        screens = np.where(over[:, None, None, None], started, screens)
    screens = channels.move_last(screens)
    return self.to_outcome(screens, rewards, terminated, truncated, ended)

  def render(self, slots: Sequence[int]) -> rendering.Pictures:
    """Returns the frames of the last step, `[T, 210, 160, 3]` per slot.

    Raises:
      NoPictureError: If `FILMED` was not among the settings.
    """
    if self._replicas is None:
      raise rendering.NoPictureError(
        f'its games were made without rendering, {rendering.HOW_TO_FILM}'
      )
    return self._replicas.render(slots)

  def close(self) -> None:
    """Stops the threads; the environment must not be referenced elsewhere."""
    self._env.close()
    del self._env


def _roms() -> dict[str, str]:
  """Returns the ROM file of each single-player game."""
  ale_py = extras.import_extra('ale_py', 'atari')
  gymnasium = extras.import_extra('gymnasium', 'atari')
  if not hasattr(ale_py, 'AtariVectorEnv'):
    raise ImportError(
      'This environment needs the vector environments of ale-py. Install it'
      " with: pip install 'repertory[atari]'"
    )
  return {
    name.removeprefix('ALE/').removesuffix('-v5'): spec.kwargs['game']
    for name, spec in gymnasium.registry.items()
    if name.startswith('ALE/') and name.endswith('-v5')
  }
