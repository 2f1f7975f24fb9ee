"""Errors that name what was typed, where they name settings of Python."""

import contextlib
import dataclasses
import re
from collections.abc import Collection
from typing import Any

from absl import flags

from repertory.agents import registry as agents_registry
from repertory.agents.wrappers import wrap_config
from repertory.components import settings
from repertory.environments import argument_checks

# Flags that are not called like the setting they set.
_FLAG_OF = {
  'launch_type': 'lp_launch_type',
  'max_steps': 'steps',
  'num_episodes': 'episodes',
  'project': 'wandb_project',
}
# Settings that are no flags, but arguments after the command.
_ARGUMENT_OF = {'output': 'OUTPUT'}
_CONFIG = 'config.'

# Flags of Stable-Baselines3 and of its zoo, with the flags here.
_FLAG_FOR = {
  'algo': 'agent',
  'env_id': 'env',
  'total_timesteps': 'steps',
  'n_timesteps': 'steps',
  'n_envs': 'environments_per_actor',
  'num_envs': 'environments_per_actor',
  'eval_freq': 'evaluation_period',
  'eval_episodes': 'evaluation_episodes',
  'n_eval_episodes': 'evaluation_episodes',
  'save_freq': 'checkpoint_period_learner_steps',
  'log_folder': 'directory',
  'tensorboard_log': 'directory',
}

_ILLEGAL = re.compile(r'flag --(\w+)=(.*?): .*', re.DOTALL)
_KINDS = {'int': 'an integer', 'float': 'a number', 'bool': 'true or false'}


def describe(
  error: Exception, values: flags.FlagValues, advised: Collection[str]
) -> str:
  """Says of an error what is to be typed, and changes nothing else in it.

  Args:
    error: One of absl, one that names settings, or any other.
    values: The flags of the command.
    advised: Flags of `train`, which would help.
  """
  if isinstance(error, flags.IllegalFlagValueError):
    return _describe_illegal(str(error), values)
  if isinstance(error, flags.UnrecognizedFlagError):
    return _describe_unknown(error.flagname, values)
  if isinstance(error, settings.SettingError):
    return error.tell(
      _call(error.setting, values),
      *(_assign(name, value, advised) for name, value in error.remedy.items()),
    )
  # All that environments are given comes from their name.
  if isinstance(error, argument_checks.ArgumentError) and _has('env', values):
    is_all = error.argument in ('name', 'environment')
    return f'--env: {error.problem if is_all else error}'
  if isinstance(error, ImportError) and _has('env', values):
    return f'--env: {settings.text_of(error)}'
  return settings.text_of(error)


def _has(flag: str, values: flags.FlagValues) -> bool:
  """Returns whether a command has a flag, and the flag a value."""
  return flag in values and values[flag].value is not None


def _call(setting: str, values: flags.FlagValues) -> str:
  """Returns the flag or argument that sets a setting, or else the setting."""
  flag = _FLAG_OF.get(setting, setting)
  if flag in values:
    return f'--{flag}'
  if 'wrap' in values and setting.startswith(f'{wrap_config.WRAP}.'):
    return f'--{setting}'
  name = setting.removeprefix(_CONFIG)
  if _has('agent', values) and (name != setting or _is_of_agent(name, values)):
    return f'--{_CONFIG}{name}'
  return _ARGUMENT_OF.get(setting, setting)


def _is_of_agent(name: str, values: flags.FlagValues) -> bool:
  # Not `values.agent`, which raises if the flags after it were not parsed.
  agent = str(values['agent'].value)
  config_class = agents_registry.get(agent).config_class
  return name in {field.name for field in dataclasses.fields(config_class)}


def _assign(setting: str, value: Any, advised: Collection[str]) -> str:
  """Returns what to add to `repertory train` for a setting to have a value."""
  flag = _FLAG_OF.get(setting, setting)
  text = str(value).lower() if isinstance(value, bool) else str(value)
  if flag not in advised:
    return f'--{_CONFIG}{setting}={text}'
  return f'--{flag}' if value is True else f'--{flag}={text}'


def _describe_illegal(message: str, values: flags.FlagValues) -> str:
  """Says what a flag takes, where absl says what failed inside of it."""
  match = _ILLEGAL.fullmatch(message)
  if match is None or match[1] not in values:
    return message
  name, value = match.groups()
  kind = _KINDS.get(values[name].flag_type())
  if kind is None:
    return message
  hint = settings.write_whole(value) if kind == 'an integer' else ''
  return f'--{name} must be {kind}, got {value!r}.{hint}'


def _describe_unknown(name: str, values: flags.FlagValues) -> str:
  """Says that a command has no such flag, which is named without dashes."""
  bare = name.replace('-', '_')
  flag = _FLAG_FOR.get(bare, bare)
  if flag not in values:
    flag = _find_setting(bare, values) if _has('agent', values) else None
  near = [flag] if flag else settings.nearest(name, values)
  hint = f" Did you mean '--{near[0]}'?" if near else ''
  if name == _CONFIG.removesuffix('.') and _has('agent', values):
    hint = f' Settings of the agent are --{_CONFIG}<name>=<value>.'
  return f"Unknown flag '--{name}'.{hint} --help lists all."


def _find_setting(name: str, values: flags.FlagValues) -> str | None:
  """Returns the flag of the agent's setting of that name, if it has one."""
  with contextlib.suppress(settings.SettingError):  # No such agent.
    name = agents_registry.OTHER_NAMES.get(name, name)
    if _is_of_agent(name, values):
      return f'{_CONFIG}{name}'
  return None
