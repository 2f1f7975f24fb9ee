"""Registry of baseline and custom agents."""

import contextlib
import dataclasses
import functools
import importlib
import pkgutil
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from repertory import agents as folders
from repertory.agents.interface import agent_config
from repertory.agents.interface.agent import Agent
from repertory.components.config import import_paths, schedules
from repertory.components.config import settings as settings_lib

if TYPE_CHECKING:
  from repertory.agents.interface import builder
  from repertory.components import specs

# Pattern of the names of custom agents.
OWN = '<module>:<Builder>'
AUTO = 'auto'  # Name of the preset that is looked up by environment.
NO_PRESET = 'none'  # Name of the plain defaults.

# Names of agents and settings in other libraries, and their counterparts here.
_CLOSE_TO = {
  'a2c': ('impala', 'ppo'),
  'a3c': ('impala', 'ppo'),
  'ddpg': ('td3', 'd4pg'),
  'trpo': ('ppo',),
  'qrdqn': ('dqn',),
}
OTHER_NAMES = {
  'lr': 'learning_rate',
  'gamma': 'discount',
  'buffer_size': 'max_replay_size',
  'learning_starts': 'min_replay_size',
}


# Earlier names of agents' settings, and present ones.
_RENAMED = {'scale_rewards': 'normalize_rewards'}


@functools.cache
def _folders() -> list[str]:
  found = pkgutil.iter_modules(folders.__path__)
  return [module.name for module in found if module.ispkg]


@functools.cache
def _in_folder(name: str) -> Agent | None:
  """Returns the agent of a package, or None if it has no `DESCRIPTION`.

  Such a package exports `PRESETS`, `<Agent>Config` and `<Agent>Builder`.
  """
  package = importlib.import_module(f'{folders.__name__}.{name}')
  if 'DESCRIPTION' not in vars(package):
    return None
  config = next(one for one in package.__all__ if one.endswith('Config'))
  builder = config.removesuffix('Config') + 'Builder'
  return Agent(
    name,
    package.DESCRIPTION,
    getattr(package, config),
    package.PRESETS,
    f'{package.__name__}:{builder}',
  )


def agents() -> tuple[Agent, ...]:
  """Returns all baseline agents: those of all packages."""
  return tuple(filter(None, map(_in_folder, _folders())))


def get(name: str) -> Agent:
  """Returns an agent by name.

  Args:
    name: Name of a baseline agent, or 'package.module:Builder', which is
      imported.

  Raises:
    SettingError: If the agent is unknown, with a suggestion, or if the import
      path does not lead to a valid builder.
  """
  if name in _folders() and (agent := _in_folder(name)):
    return agent
  if import_paths.SYNTAX.fullmatch(name) is None:
    names = [one.name for one in agents()]
    owners = [one.name for one in agents() if name.lower() in one.presets]
    hint = ''
    if owners:
      hint = (
        f' It is a preset of {" and of ".join(owners)}: use that agent with '
        f"preset '{name.lower()}'."
      )
    if close := _CLOSE_TO.get(name.lower()):
      hint = f' Did you mean {" or ".join(map(repr, close))}?{hint}'
    hint = hint or settings_lib.did_you_mean(name, names)
    raise settings_lib.SettingError(
      'agent',
      f"must be the name of an agent, got '{name}'.{hint} Choose one "
      f'of {", ".join(names)}, or {OWN} for a custom agent.',
    )
  # Most runs have no custom agent.
  from repertory.agents.interface import user_agents  # noqa: PLC0415

  return user_agents.find(name)


def fitting(spec: 'specs.EnvironmentSpec') -> list[str]:
  """Returns the names of the agents that support an environment spec."""
  found = []
  for agent in agents():
    with contextlib.suppress(ValueError):
      agent.builder_class(agent.config_class()).make_network(spec)
      found.append(agent.name)
  return found


def make_config(
  name: str, settings: Mapping[str, Any], preset: str | None = None
) -> agent_config.AgentConfig:
  """Creates an agent's config.

  Args:
    name: Such as 'dqn'.
    settings: Values by config field, as Python values or as text.
    preset: Name of a preset, such as 'atari'; None or 'none' for the defaults.

  Raises:
    SettingError: If the agent, the preset or a field is unknown, or a value
      is invalid.
  """
  agent = get(name)
  for before, now in _RENAMED.items():
    if {before, now} <= settings.keys():
      raise settings_lib.SettingError(
        f'config.{before}',
        f'must be left out with config.{now}, whose earlier name it is.',
      )
  settings = {_RENAMED.get(one, one): value for one, value in settings.items()}
  if preset not in (None, NO_PRESET):
    settings = {**_get_preset(agent, preset), **settings}
  values = parse_settings(
    settings, agent.config_class, 'config', f"agent '{name}'",
    f'repertory agents {name}',
  )  # fmt: skip
  for one in settings_lib.describe(agent.config_class):
    if one.default is dataclasses.MISSING and one.name not in values:
      raise settings_lib.SettingError(
        f'config.{one.name}',
        f"must be given: agent '{name}' has no default for it.",
      )
  return agent.config_class(**values)


def parse_settings(
  settings: Mapping[str, Any],
  config_class: type,
  prefix: str,
  owner: str,
  command: str,
) -> dict[str, Any]:
  """Parses values or texts by field of a dataclass.

  Errors name settings by `prefix`, the `owner` of the config, and the `command`
  that lists its settings.
  """
  kinds = typing.get_type_hints(config_class)
  known = [field.name for field in dataclasses.fields(config_class)]
  for field in settings:
    if field not in known:
      hint = settings_lib.did_you_mean(OTHER_NAMES.get(field, field), known)
      if owners := _find_owners(field) if prefix == 'config' else '':
        hint = f' Agents with this setting: {owners}.'
      raise settings_lib.SettingError(
        f'{prefix}.{field}',
        f'is not a setting of {owner}.{hint} `{command}` lists its settings.',
      )
  values = {}
  for field, value in settings.items():
    name, kind = f'{prefix}.{field}', kinds[field]
    is_number = settings_lib.kind_of(kind) in (int, float)
    if is_number and schedules.is_schedule(value):
      values[field] = schedules.Schedule(value, name)
    else:
      values[field] = settings_lib.parse(name, value, kind)
  return values


def _find_owners(setting: str) -> str:
  """Returns the names of the registry's agents with a setting."""
  return ', '.join(
    agent.name
    for agent in agents()
    if setting in agent.config_class.__dataclass_fields__
  )


def _get_preset(agent: Agent, preset: str) -> Mapping[str, Any]:
  if preset in agent.presets:
    return agent.presets[preset]
  known = ', '.join([AUTO, NO_PRESET, *sorted(agent.presets)])
  owners = [other.name for other in agents() if preset in other.presets]
  hint = settings_lib.did_you_mean(preset, agent.presets)
  if owners:
    hint = f' Agents with a preset of that name: {", ".join(owners)}.'
  raise settings_lib.SettingError(
    'preset',
    f"of agent '{agent.name}' must be one of {known}; got '{preset}'.{hint}",
  )


def check_fits(
  builder: 'builder.Builder',
  spec: 'specs.EnvironmentSpec',
  agent: str,
  environment: str,
) -> None:
  """Raises ValueError unless a builder's network fits a spec.

  It names agents of the registry that fit, with their defaults.
  """
  try:
    builder.make_network(spec)
  except ValueError as error:
    names = ', '.join(fitting(spec))
    others = f' Agents of the registry that fit, with their defaults: {names}.'
    raise ValueError(
      f"Agent '{agent}' does not fit environment '{environment}': "
      f'{settings_lib.text_of(error)}{others if names else ""}'
    ) from error


def make_builder(
  name: str, settings: Mapping[str, Any], preset: str | None = None
) -> 'builder.Builder':
  """Creates an agent's builder from the arguments of `make_config`."""
  return get(name).builder_class(make_config(name, settings, preset))
