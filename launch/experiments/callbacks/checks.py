"""Validation of an experiment's callbacks and evaluation settings."""

from typing import Any

from repertory.components.actors import episode_metrics
from repertory.components.config import settings
from repertory.launch.experiments.callbacks import callback_list, stop_at_return


def check(experiment: Any) -> None:
  """Checks an experiment's callbacks and evaluation settings.

  Args:
    experiment: A `launch.Experiment`.

  Raises:
    SettingError: If a field is invalid; names the field.
  """
  callback_list.CallbackList(
    experiment.callbacks, experiment.loggers, experiment.stop_when
  )
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
      isinstance(experiment.stop_when, stop_at_return.StopAtReturn),
    ),
  ):
    if is_given:
      raise settings.SettingError(
        setting,
        'must be left out if there are no evaluations: evaluation_episodes is '
        '0.',
      )
