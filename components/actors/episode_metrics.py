"""Episode metrics besides return and length."""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dm_env
import numpy as np
import tree

from repertory.components import types
from repertory.components.config.settings import SettingError

# Columns that evaluation rows have anyway.
_TAKEN = (
  *('episode_return', 'episode_return_deviation', 'episode_return_min'),
  *('episode_return_max', 'episode_length', 'count', 'steps'),
  *('learner_steps', 'elapsed_seconds'),
)

_FIRST = int(dm_env.StepType.FIRST)


class EpisodeMetric(abc.ABC):
  """Measures the episodes of one environment, one after the other.

  It gets the environment's own timesteps, without the agent's frame stacking
  and scaling, and without a batch axis.
  """

  @abc.abstractmethod
  def begin(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode with its first timestep, and resets the metric."""

  @abc.abstractmethod
  def step(self, action: types.Nest, timestep: dm_env.TimeStep) -> None:
    """Adds an action, and the timestep that followed it."""

  @abc.abstractmethod
  def value(self) -> float:
    """Returns the value for the episode, after its last step."""


Makers = Mapping[str, Callable[[], EpisodeMetric]]


class EpisodeMetrics:
  """The metrics of all slots of an environment batch."""

  def __init__(
    self,
    makers: Makers,
    batch_size: int,
    original: Callable[[types.Nest], types.Nest] | None = None,
  ):
    """Creates all metrics for each slot.

    `original` recovers the environment's observation from the agent's; None if
    they are the same.
    """
    self._slots = [
      {name: make() for name, make in makers.items()} for _ in range(batch_size)
    ]
    self._original = original

  def step(self, action: types.Nest, timestep: dm_env.TimeStep) -> None:
    """Adds a step of every slot; FIRST starts one and ignores the action."""
    observation = timestep.observation
    if self._original is not None:
      observation = self._original(observation)
    for slot, metrics in enumerate(self._slots):
      step_type = dm_env.StepType(int(timestep.step_type[slot]))
      seen = _row(observation, slot)
      unbatched = dm_env.TimeStep(
        step_type, timestep.reward[slot], timestep.discount[slot], seen
      )
      for metric in metrics.values():
        if step_type == _FIRST:
          metric.begin(dm_env.restart(seen))
        else:
          metric.step(_row(action, slot), unbatched)

  def values(self, slot: int) -> dict[str, float]:
    """Returns the metrics of the ended episode of a slot, by name."""
    values = {}
    for name, metric in self._slots[slot].items():
      value = metric.value()
      try:
        values[name] = float(value)
      except (TypeError, ValueError) as error:
        raise TypeError(
          f'The value of evaluation metric {name!r} must be a number; got '
          f'{value!r}.'
        ) from error
    return values


def check(makers: Any) -> None:
  """Raises SettingError if the metrics of evaluations are invalid."""
  setting = 'evaluation_metrics'
  if not isinstance(makers, Mapping):
    raise SettingError(
      setting, f'must be a mapping of names to factories, got {makers!r}.'
    )
  for name, make in makers.items():
    if not isinstance(name, str) or not name or name in _TAKEN:
      raise SettingError(
        setting,
        f'must have names that are text and not one of {", ".join(_TAKEN)}; '
        f'got {name!r}.',
      )
    if not callable(make):
      raise SettingError(
        setting,
        'must have callables that return a new metric, such as its class; got '
        f'{make!r} for {name!r}.',
      )


def read_info(
  info: Mapping[str, Any], names: Sequence[str]
) -> dict[str, float]:
  """Returns entries of the info of an episode's last step as numbers.

  Raises:
    ValueError: If one is missing, or not a number.
  """
  values = {}
  for name in names:
    value = np.asarray(info.get(name))
    if value.dtype.kind not in 'biuf' or value.size != 1:
      found = repr(info[name]) if name in info else 'nothing'
      known = ', '.join(map(str, info)) or 'none'
      raise ValueError(
        f'Entry {name!r} of `info` must be a number in the last step of every '
        f'episode, got {found}. The entries of this step are: {known}.'
      )
    values[name] = float(value.item())
  return values


def check_info(names: Any, makers: Makers) -> None:
  """Raises SettingError unless info entries can be columns beside metrics."""
  if isinstance(names, str) or not isinstance(names, Sequence):
    raise SettingError('info', f'must be a list of names, got {names!r}.')
  taken = [*_TAKEN, 'episodes', *makers]
  for index, name in enumerate(names):
    if not isinstance(name, str) or not name or name in names[:index]:
      raise SettingError(
        'info', f'must be distinct names, none of them empty; got {name!r}.'
      )
    if name in taken:
      raise SettingError(
        'info',
        f'must not be names of other columns, {", ".join(taken)}; got '
        f'{name!r}. Rename the entry of `info`.',
      )


def _row(batch: types.Nest, slot: int) -> types.Nest:
  return tree.map_structure(lambda array: np.asarray(array)[slot], batch)
