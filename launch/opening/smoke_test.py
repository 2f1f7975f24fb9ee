"""Smoke tests of environments and network before anything starts."""

import traceback

import tree
from absl import logging

from repertory.agents.actor_critic import additional_loss
from repertory.agents.interface import registry as agents_registry
from repertory.components import specs
from repertory.components.config.settings import SettingError, text_of
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.opening import environment_batches
from repertory.launch.platform import watchdog

_EVALUATION_FACTORY = 'evaluation_environment_factory'


def find_spec(experiment: experiment_lib.Experiment) -> specs.EnvironmentSpec:
  """Returns the environment's spec; raises unless the agent fits it."""
  additional_loss.check(experiment.builder)
  spec = _try(experiment, evaluates=False)
  if experiment.evaluation_environment_factory is not None:
    _compare(spec, _try(experiment, evaluates=True))
  try:
    experiment.builder.make_network(spec)
  except ValueError as error:
    names = ', '.join(agents_registry.fitting(spec))
    fitting = f' Agents of the registry that fit, with their defaults: {names}.'
    raise ValueError(
      f"Agent '{experiment.agent}' does not fit environment "
      f"'{experiment.environment}': {text_of(error)}{fitting if names else ''}"
    ) from error
  return spec


def _try(
  experiment: experiment_lib.Experiment, evaluates: bool
) -> specs.EnvironmentSpec:
  """Makes an environment, and closes it."""
  name = f"environment '{experiment.environment}'"
  if evaluates:
    name = f'environment of {_EVALUATION_FACTORY}'
  settings = environment_batches.settings_of(experiment, evaluates)
  try:
    with watchdog.limited(watchdog.START_SECONDS, f'{name} to be made'):
      environments = settings.make([experiment.seed])
      try:
        return specs.make_environment_spec(environments)
      finally:
        try:
          environments.close()
        except Exception:  # Its spec is known already.
          logging.exception('The environment that was tried cannot be closed:')
  except (ValueError, ImportError, TimeoutError, KeyboardInterrupt):
    raise  # Their messages say what to do.
  except BaseException as error:  # Including SystemExit and StopIteration.
    raise ValueError(
      f'{name[0].upper()}{name[1:]} cannot be made:\n'
      + ''.join(traceback.format_exception(error))
    ) from error


def _compare(trained: specs.EnvironmentSpec, found: specs.EnvironmentSpec):
  """Raises SettingError if a policy of one spec cannot act in the other."""
  for what, expected, got in zip(trained._fields, trained, found):

    def compared(one: specs.Array, is_exact: bool = what == 'actions'):
      # Bounds of observations have no effect on the policy.
      return one if is_exact else (one.shape, one.dtype)

    if tree.map_structure(compared, expected) != tree.map_structure(
      compared, got
    ):
      raise SettingError(
        _EVALUATION_FACTORY,
        f'must make environments with the {what} of those that are trained '
        f'on, {expected}; got {got}.',
      )
