"""Makes the experiment, topology and launcher of the flags.

Flags do not reach other processes. TensorFlow is imported only after each flag
was checked by itself.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from repertory.agents.reward_models import reward_model_config
from repertory.components.config import import_paths
from repertory.components.config import settings as settings_lib
from repertory.launch.cli import flags as flag_tables
from repertory.launch.experiments import callbacks, naming
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.launchers import launcher
from repertory.launch.platform import interrupts
from repertory.launch.topologies import topology as topology_lib

_LONG = 10**12  # Steps that fill every table.


def make_experiment(
  values: flags.FlagValues, settings: Mapping[str, str]
) -> experiment_lib.Experiment:
  """Makes the experiment of a command's flags."""
  arguments = _arguments(values, settings)
  with interrupts.exiting_on_interrupt():  # TensorFlow is imported.
    return naming.make_experiment(values.agent, values.env, **arguments)


def plan_experiment(
  values: flags.FlagValues, settings: Mapping[str, str]
) -> naming.ExperimentPlan:
  """Makes the plan of an experiment, without TensorFlow."""
  arguments = _arguments(values, settings)
  arguments['directory'] = arguments.get('directory') or 'new'
  return naming.plan_experiment(values.agent, values.env, **arguments)


def _arguments(
  values: flags.FlagValues, settings: Mapping[str, str]
) -> dict[str, Any]:
  """Returns the arguments of an experiment besides agent and environment."""
  if 'directory' in values and values.directory == '':
    raise settings_lib.SettingError(
      'directory', 'must be a path, or left out; got nothing.'
    )
  chosen: dict[str, Any] = {
    name: values[name].value
    for name in values
    if name in flag_tables.FIELDS and name != 'agent'
  }
  if 'demonstrations' in values:
    chosen['demonstrations'] = values.demonstrations or ()
  if 'info' in values:
    chosen['info'] = values.info or ()
    chosen['callbacks'] = _find_callbacks(values.callbacks or ())
    chosen['evaluation_metrics'] = _find_metrics(
      values.evaluation_metrics or ()
    )
  if 'stop_at_return' in values and values.stop_at_return is not None:
    chosen['stop_when'] = callbacks.StopAtReturn(values.stop_at_return)
  if 'wandb_project' in values and values.wandb_project is not None:
    chosen['loggers'] = [callbacks.WandB(values.wandb_project)]
  prefix = reward_model_config.PREFIX
  of_reward_model = {
    name.removeprefix(prefix): value
    for name, value in settings.items()
    if name.startswith(prefix)
  }
  return {
    **chosen,
    'max_steps': values.steps if 'steps' in values else _LONG,
    'config': {
      name: value
      for name, value in settings.items()
      if not name.startswith(prefix)
    },
    'preset': values.preset,
    'reward_model': values.reward_model,
    'reward_model_config': of_reward_model,
  }


def _find_callbacks(paths: Sequence[str]) -> list[Any]:
  """Makes callbacks from import paths of classes or objects."""
  found = [_find('callbacks', path) for path in paths]
  for index, (path, one) in enumerate(zip(paths, found)):
    if not isinstance(one, type):
      continue
    try:
      found[index] = one()
    except Exception as error:
      raise settings_lib.SettingError(
        'callbacks',
        f'must be classes that can be called without arguments, got {path}, '
        f'which raises:\n\n{import_paths.trace(error, __file__)}',
      ) from error
  return found


def _find_metrics(items: Sequence[str]) -> dict[str, Any]:
  """Finds metrics by column, from items such as 'moves=my_module:Moves'."""
  metrics = {}
  for item in items:
    column, equals, path = item.partition('=')
    if not equals or not column or column in metrics:
      raise settings_lib.SettingError(
        'evaluation_metrics',
        'must be <column>=<module>:<class>, each column once, such as '
        f'moves=my_module:Moves; got {item!r}.',
      )
    metrics[column] = _find('evaluation_metrics', path)
  return metrics


def _find(setting: str, path: str) -> Any:
  if import_paths.SYNTAX.fullmatch(path) is None:
    raise settings_lib.SettingError(
      setting, f'must be <module>:<class>, got {path!r}.'
    )
  try:
    return import_paths.find(path)
  except import_paths.ImportPathError as error:
    raise settings_lib.SettingError(
      setting, f'must be an object that can be imported, got {path!r}: {error}'
    ) from error


def make_topology(values: flags.FlagValues) -> topology_lib.Topology:
  """Makes the topology of the flags."""
  # Checks of devices import TensorFlow.
  with interrupts.exiting_on_interrupt():
    return _make_chosen(
      values,
      'topology',
      topology_lib.get(values.topology),
      topology_lib.topologies(),
      flag_tables.TOPOLOGY_FLAGS,
    )


def make_layout(
  values: flags.FlagValues,
) -> tuple[topology_lib.Topology, launcher.Launcher]:
  """Makes the topology and the launcher of the flags, and checks the pair."""
  topology = make_topology(values)
  launch_type = _make_chosen(
    values,
    'lp_launch_type',
    launcher.get(values.lp_launch_type),
    launcher.launchers(),
    flag_tables.LAUNCHER_FLAGS,
  )
  topology_lib.check_launch(
    topology, launch_type, values.deterministic, values.eager
  )
  return topology, launch_type


def _make_chosen(values, flag: str, kind, kinds, flag_table):
  """Makes the topology or launcher that a flag names, from its own flags."""
  own = {field.name for field in dataclasses.fields(kind)}
  chosen = {
    name: values[name].value for name, *_ in flag_table if values[name].present
  }
  for name in sorted(chosen.keys() - own):
    owners = [
      other
      for other, kind in kinds.items()
      if name in {field.name for field in dataclasses.fields(kind)}
    ]
    raise settings_lib.SettingError(
      name,
      f'must be left out: it belongs to --{flag}={" or ".join(owners)}, got '
      f'--{flag}={values[flag].value}.',
    )
  settings = {
    name: tuple(value) if isinstance(value, list) else value
    for name, value in chosen.items()
  }
  return kind(**settings)
