"""Makes the experiment, topology and launcher of the flags.

Flags do not reach other processes. TensorFlow is imported only after each flag
was checked by itself.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from repertory.agents.interface import registry as agents_registry
from repertory.agents.interface import tuned_presets
from repertory.agents.reward_models import reward_model_config
from repertory.components.config import import_paths
from repertory.components.config import settings as settings_lib
from repertory.launch.cli import flags as flag_tables
from repertory.launch.experiments import callbacks, naming
from repertory.launch.experiments import experiment as experiment_lib
from repertory.launch.launchers import launcher
from repertory.launch.platform import interrupts
from repertory.launch.topologies import offline
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
  return naming.plan_experiment(values.agent, values.env, **arguments)


def _arguments(
  values: flags.FlagValues, settings: Mapping[str, str]
) -> dict[str, Any]:
  """Returns the arguments of an experiment besides agent and environment."""
  found = {name: values[name].value for name in values}
  if found.get('directory') == '':
    raise settings_lib.SettingError(
      'directory', 'must be a path, or left out; got nothing.'
    )
  # Without a value, the experiment's default holds.
  chosen: dict[str, Any] = {
    name: value
    for name, value in found.items()
    if name in flag_tables.FIELDS and name != 'agent' and value is not None
  }
  if 'callbacks' in chosen:
    chosen['callbacks'] = [
      _find('callbacks', path) for path in chosen['callbacks']
    ]
  if 'evaluation_metrics' in chosen:
    chosen['evaluation_metrics'] = _find_metrics(chosen['evaluation_metrics'])
  if found.get('stop_at_return') is not None:
    chosen['stop_when'] = callbacks.StopAtReturn(values.stop_at_return)
  if found.get('wandb_project') is not None:
    chosen['loggers'] = [callbacks.WandB(values.wandb_project)]
  own, of_model = (
    {
      name.removeprefix(prefix): text
      for name, text in settings.items()
      if name.startswith(prefix)
    }
    for prefix in (experiment_lib.CONFIG, reward_model_config.PREFIX)
  )
  return {
    **chosen,
    'max_steps': found.get('steps', _LONG),
    'config': own,
    'preset': preset_of(values),
    'reward_model': values.reward_model,
    'reward_model_config': of_model,
  }


def preset_of(values: flags.FlagValues) -> str | None:
  """Returns the preset of the flags; None for the plain defaults.

  'auto' is returned only where settings for the environment are known.
  """
  if values.preset == agents_registry.AUTO:
    return None if _find_tuned(values) is None else values.preset
  return None if values.preset == agents_registry.NO_PRESET else values.preset


def _find_tuned(values: flags.FlagValues) -> tuned_presets.TunedPreset | None:
  """Returns what 'auto' chooses: settings for learning by interaction."""
  is_offline = values.topology == offline.Offline.name
  if values.preset != agents_registry.AUTO or is_offline:
    return None
  return tuned_presets.find(values.agent, values.env)


def describe_preset(
  values: flags.FlagValues, settings: Mapping[str, str]
) -> str:
  """Returns a line on the settings that 'auto' changes; '' if none."""
  tuned = _find_tuned(values)
  if tuned is None:
    return ''
  chosen = {*tuned.settings}
  if tuned.base is not None:
    chosen |= {*agents_registry.get(values.agent).presets[tuned.base]}
  names = {f'{experiment_lib.CONFIG}{name}' for name in chosen}
  if tuned.environments_per_actor and values.environments_per_actor is None:
    names.add('environments_per_actor')
  if not (number := len(names - settings.keys())):
    return ''
  return (
    f'Preset: {number} setting{"s" if number > 1 else ""} for '
    f'{tuned.match(values.env)} and {tuned.steps:,} steps (source: '
    f'{tuned.source}); --preset={agents_registry.NO_PRESET} for the defaults'
  )


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
  """Imports a class, which is called if it is one of callbacks."""
  if import_paths.SYNTAX.fullmatch(path) is None:
    raise settings_lib.SettingError(
      setting, f'must be <module>:<class>, got {path!r}.'
    )
  try:
    found = import_paths.find(path)
    if setting == 'callbacks' and isinstance(found, type):
      with import_paths.errors_while(f'calling {path}()', __file__):
        return found()
    return found
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
  chosen = {
    name: values[name].value for name, *_ in flag_table if values[name].present
  }
  for name, value in chosen.items():
    owners = [
      other
      for other, one in kinds.items()
      if name in {field.name for field in dataclasses.fields(one)}
    ]
    if values[flag].value not in owners:
      raise settings_lib.SettingError(
        name,
        f'must be left out: it belongs to --{flag}={" or ".join(owners)}, got '
        f'--{flag}={values[flag].value}.',
      )
    if isinstance(value, list):
      chosen[name] = tuple(value)
  return kind(**chosen)
