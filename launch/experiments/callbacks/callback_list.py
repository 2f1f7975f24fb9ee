"""List of all callbacks of a run, and its transfer to the coordinator."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle

from repertory.components.actors import episode_metrics
from repertory.components.config import settings
from repertory.launch.experiments.callbacks import callback

_PREFIX = 'on_'


class CallbackList:
  """All callbacks of a run.

  After unpickling, they stay bytes until first use, so that nodes other than
  the coordinator need not import their modules.
  """

  def __init__(
    self,
    callbacks: Sequence[callback.Callback] = (),
    loggers: Sequence[callback.RowLogger] = (),
    stop_when: Callable[[Any], bool | str] | None = None,
  ):
    """Checks and keeps the callbacks; arguments are as in `launch.Experiment`.

    Raises:
      SettingError: If they have the wrong type or unknown methods.
    """
    _check_kind('callbacks', callbacks, callback.Callback)
    _check_kind('loggers', loggers, callback.RowLogger)
    for index, one in enumerate(callbacks):
      _check_names(f'callbacks[{index}]', type(one))
    if not (stop_when is None or callable(stop_when)):
      raise settings.SettingError(
        'stop_when',
        f'must be a function of the status, or None; got {stop_when!r}.',
      )
    self._parts: dict[str, Any] | None = {
      'callbacks': tuple(callbacks),
      'loggers': tuple(loggers),
      'stop_when': stop_when,
    }
    self._packed = b''

  @property
  def callbacks(self) -> Sequence[callback.Callback]:
    return self._unpack()['callbacks']

  @property
  def loggers(self) -> Sequence[callback.RowLogger]:
    return self._unpack()['loggers']

  @property
  def stop_when(self) -> Callable[[Any], bool | str] | None:
    return self._unpack()['stop_when']

  def check_can_travel(self, launch_type: str) -> None:
    """Checks that all callbacks can be pickled.

    Args:
      launch_type: Name of the launcher, for the error.

    Raises:
      SettingError: If one cannot be pickled; names it and the cause.
    """
    named = {'stop_when': self.stop_when}
    for setting in ('callbacks', 'loggers'):
      for index, one in enumerate(self._unpack()[setting]):
        named[f'{setting}[{index}]'] = one
    for name, one in named.items():
      try:
        cloudpickle.dumps(one)
      except Exception as error:
        raise settings.SettingError(
          name.split('[')[0],
          f'must be picklable with launch type {launch_type!r}, which runs '
          f'callbacks in a separate process; got {name}, a '
          f'{type(one).__name__}, which raises {type(error).__name__}: '
          f'{error}. Open files and connections when the run starts.',
        ) from error

  def __getstate__(self) -> dict[str, Any]:
    packed = self._packed or cloudpickle.dumps(self._parts)
    return {'_parts': None, '_packed': packed}

  def _unpack(self) -> dict[str, Any]:
    parts = self._parts
    if parts is None:
      parts = self._parts = cloudpickle.loads(self._packed)
    return parts


def _check_kind(setting: str, found: Any, kind: type) -> None:
  """Checks that callbacks are a sequence of objects of one class."""
  if not isinstance(found, (list, tuple)):
    raise settings.SettingError(
      setting,
      f'must be a list of `launch.{kind.__name__}` objects; got {found!r}.',
    )
  for index, one in enumerate(found):
    if isinstance(one, kind):
      continue
    is_class = isinstance(one, type) and issubclass(one, kind)
    hint = f' Write {one.__name__}().' if is_class else ''
    raise settings.SettingError(
      setting,
      f'must be objects of subclasses of `launch.{kind.__name__}`; '
      f'got {one!r} at index {index}.{hint}',
    )


def _check_names(name: str, kind: type) -> None:
  """Checks that a callback has no unknown callback methods."""
  known = [one for one in vars(callback.Callback) if one.startswith(_PREFIX)]
  for method in dir(kind):
    if method.startswith(_PREFIX) and method not in known:
      raise settings.SettingError(
        'callbacks',
        f'must have no unknown methods {_PREFIX}*; {name} of class '
        f'{kind.__name__} has {method}.' + settings.did_you_mean(method, known),
      )


def check(experiment: Any) -> None:
  """Checks an experiment's callbacks and evaluation settings.

  Args:
    experiment: A `launch.Experiment`.

  Raises:
    SettingError: If a field is invalid; names the field.
  """
  CallbackList(experiment.callbacks, experiment.loggers, experiment.stop_when)
  factory = experiment.evaluation_environment_factory
  if not (factory is None or callable(factory)):
    raise settings.SettingError(
      'evaluation_environment_factory',
      f'must map a seed to an environment, or be None; got {factory!r}.',
    )
  episode_metrics.check(experiment.evaluation_metrics)
  episode_metrics.check_info(experiment.info, experiment.evaluation_metrics)
  if experiment.evaluation_episodes:
    return
  for setting, is_given in (
    ('evaluation_environment_factory', factory is not None),
    ('evaluation_metrics', bool(experiment.evaluation_metrics)),
    (
      'stop_at_return',
      isinstance(experiment.stop_when, callback.StopAtReturn),
    ),
  ):
    if is_given:
      raise settings.SettingError(
        setting,
        'must be left out if there are no evaluations: evaluation_episodes is '
        '0.',
      )


NONE = CallbackList()


def take(experiment: Any) -> tuple[Any, CallbackList]:
  """Splits a `launch.Experiment` into itself without callbacks, and these.

  Only the coordinator needs the callbacks.
  """
  callback_list = CallbackList(
    experiment.callbacks, experiment.loggers, experiment.stop_when
  )
  nothing = {'callbacks': (), 'loggers': (), 'stop_when': None}
  return dataclasses.replace(experiment, **nothing), callback_list
