"""Vectorized Atari games with the standard preprocessing (ALE)."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dm_env import specs

from repertory.components.runtime import stacked_array
from repertory.environments.adapters import extras, gymnasium_sources
from repertory.environments.batches import vector_batch
from repertory.environments.registry import name_options
from repertory.environments.rendering import rendering
from repertory.environments.values import argument_checks

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
    'max_frames', 108_000, 'Maximum number of frames per game', 1, 2**31 - 1
  ),
  name_options.Option(
    'threads', 0, 'Threads per batch; 0 for one per core', maximum=1024
  ),
)


class AtariSource(vector_batch.VectorSource):
  """B games in ALE's own vector environment, as a `vector_batch.VectorSource`.

  Each action is repeated for `frame_skip` frames. An observation is the stack
  of the last gray screens, `[84, 84, stack]` of uint8, the newest last. Each
  screen is the maximum of two successive frames, because sprites flicker; the
  stack of a new game is padded with black screens. Rewards are not clipped. See
  https://doi.org/10.1038/nature14236 and https://arxiv.org/abs/1709.06009.

  A slot does not depend on the other slots. With `life_loss`, a lost life ends
  the episode but not the game: the step that restarts the slot is one no-op,
  and the stack still holds the screens of the previous life.

  `render` returns the last screen in color, `[210, 160, 3]`, of the same games,
  which are deterministic, in a second vector environment.
  """

  def __init__(
    self, game: str, settings: Mapping[str, Any], seeds: Sequence[int]
  ):
    """Loads a game, such as 'SpaceInvaders', with a value for each option.

    The setting `render_mode` enables rendering. Each slot has a seed of at
    least 0, used for its first game only.
    """
    self._seeds: np.ndarray | None = np.array(
      [argument_checks.fold_seed(seed) for seed in seeds]
    )
    roms = _roms()
    argument_checks.check_known('game', game, sorted(roms))
    ale_py = extras.import_extra('ale_py', 'atari')
    # ALE logs its version at each start.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    make = functools.partial(
      ale_py.AtariVectorEnv,
      roms[game],
      len(seeds),
      num_threads=settings['threads'],
      max_num_frames_per_episode=settings['max_frames'],
      repeat_action_probability=settings['sticky_actions'],
      full_action_space=settings['full_actions'],
      frameskip=settings['frame_skip'],
      noop_max=settings['noops'],
      life_loss_info=settings['life_loss'],
      reward_clipping=False,
      use_fire_reset=False,
      autoreset_mode='NextStep',
    )
    self._envs = [make(stack_num=settings['stack'])]
    if settings.get('render_mode'):
      self._envs.append(
        make(stack_num=1, grayscale=False, img_height=210, img_width=160)
      )
    self._frames = np.empty(0, np.uint8)  # [B, 1, 210, 160, 3]
    self.render_fps = 60 / settings['frame_skip']
    self._life_loss = settings['life_loss']
    _, height, width = self._envs[0].single_observation_space.shape
    num_actions = int(self._envs[0].single_action_space.n)
    super().__init__(
      len(seeds),
      stacked_array.StackedArray(
        (height, width, settings['stack']),
        np.uint8,
        0,
        255,
        'screens',
        num_frames=settings['stack'],
      ),
      specs.DiscreteArray(num_actions, np.int32, 'action'),
    )

  def reset(self) -> np.ndarray:
    seeds, self._seeds = self._seeds, None
    screens, _ = self._call('reset', seed=seeds)
    return gymnasium_sources.move_channels_last(screens)

  def step(
    self, actions: np.ndarray, ended: np.ndarray | None
  ) -> vector_batch.StepResult:
    """Steps each game; restarts it, or its next life, where it has ended."""
    screens, rewards, terminated, truncated, _ = self._call('step', actions)
    if self._life_loss and ended is not None:
      # The game may end during the no-op that begins the next life.
      over = ended & (terminated | truncated)
      if over.any():
        started, _ = self._call('reset', options={'reset_mask': over})
        screens = np.where(over[:, None, None, None], started, screens)
    screens = gymnasium_sources.move_channels_last(screens)
    return gymnasium_sources.to_step_result(
      screens, rewards, terminated, truncated, ended
    )

  def _call(self, method: str, *arguments: Any, **settings: Any) -> Any:
    """Calls the games, and those in color; returns the result of the former."""
    results = [
      getattr(env, method)(*arguments, **settings) for env in self._envs
    ]
    self._frames = results[-1][0]
    return results[0]

  def render(self, slots: Sequence[int]) -> rendering.Frames:
    """Returns the screens of the last step, `[210, 160, 3]` per slot."""
    if len(self._envs) < 2:
      raise rendering.RenderError(
        f'its games were made without rendering, {rendering.HOW_TO_RENDER}'
      )
    return [np.array(self._frames[slot, 0]) for slot in slots]

  def close(self) -> None:
    """Stops the threads; the environments must not be referenced elsewhere."""
    while self._envs:
      self._envs.pop().close()


def _roms() -> dict[str, str]:
  """Returns the ROM file of each single-player game."""
  extras.import_extra('ale_py', 'atari')  # Registers its games.
  gymnasium = extras.import_extra('gymnasium', 'atari')
  return {
    name.removeprefix('ALE/').removesuffix('-v5'): spec.kwargs['game']
    for name, spec in gymnasium.registry.items()
    if name.startswith('ALE/') and name.endswith('-v5')
  }
