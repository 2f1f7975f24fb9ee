"""Errors in words for the terminal, with flags instead of Python settings."""

import contextlib
import dataclasses
import re
from typing import Any

from absl import flags

from repertory.agents.interface import registry as agents_registry
from repertory.agents.reward_models import reward_model_config
from repertory.components.config import settings
from repertory.environments.values import argument_checks
from repertory.launch import failures
from repertory.launch.cli import flags as flag_tables

# Flags whose names differ from those of their settings.
_FLAG_OF = {
  'launch_type': 'lp_launch_type',
  'max_steps': 'steps',
  'num_episodes': 'episodes',
  'policy': 'from_zoo',
  'project': 'wandb_project',
}
# Settings given as positional arguments.
_ARGUMENT_OF = {'output': 'OUTPUT'}
_CONFIG = 'config.'

# Flags of Stable-Baselines3 and its zoo, and their counterparts here.
_FLAG_FOR = {
  'algo': 'agent',
  'observers': 'callbacks',
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


def describe(error: Exception, values: flags.FlagValues) -> str:
  """Returns an error's message, with a command's flags in place of settings."""
  if isinstance(error, flags.IllegalFlagValueError):
    return _describe_illegal(str(error), values)
  if isinstance(error, flags.UnrecognizedFlagError):
    return _describe_unknown(error.flagname, values)
  if isinstance(error, settings.SettingError):
    return error.format(
      _call(error.setting, values),
      *(_assign(name, value) for name, value in error.remedy.items()),
    )
  if isinstance(error, failures.NodeError):
    if error.failure.refused is None:
      return str(error)
    refusal = settings.SettingError(*error.failure.refused)
    message = describe(refusal, values).rstrip('.')
    return f"{message}. Raised in node '{error.failure.node}'."
  # All arguments of environments come from their name.
  if isinstance(error, argument_checks.ArgumentError) and _has('env', values):
    is_all = error.argument in ('name', 'environment')
    return f'--env: {error.problem if is_all else error}'
  if isinstance(error, ImportError) and _has('env', values):
    return f'--env: {settings.text_of(error)}'
  return settings.text_of(error)


def _has(flag: str, values: flags.FlagValues) -> bool:
  """Whether a command has a flag, and the flag has a value."""
  return flag in values and values[flag].value is not None


def _call(setting: str, values: flags.FlagValues) -> str:
  """Returns the flag or argument of a setting, or else its name."""
  flag = _FLAG_OF.get(setting, setting)
  if flag in values:
    return f'--{flag}'
  name = reward_model_config.REWARD_MODEL
  if name in values and setting.startswith(reward_model_config.PREFIX):
    return f'--{setting}'
  name = setting.removeprefix(_CONFIG)
  if (_has('agent', values) and name != setting) or _is_of_agent(name, values):
    return f'--{_CONFIG}{name}'
  return _ARGUMENT_OF.get(setting, setting)


def _is_of_agent(name: str, values: flags.FlagValues) -> bool:
  """Whether the command's agent has a setting."""
  if not _has('agent', values):
    return False
  # Not `values.agent`, which raises if later flags were not parsed.
  agent = str(values['agent'].value)
  with contextlib.suppress(settings.SettingError):  # No such agent.
    config_class = agents_registry.get(agent).config_class
    return name in {field.name for field in dataclasses.fields(config_class)}
  return False


def _assign(setting: str, value: Any) -> str:
  """Returns the argument of `repertory train` that sets a setting."""
  flag = _FLAG_OF.get(setting, setting)
  text = str(value).lower() if isinstance(value, bool) else str(value)
  if flag not in flag_tables.TRAIN_NAMES:
    return f'--{_CONFIG}{setting}={text}'
  return f'--{flag}' if value is True else f'--{flag}={text}'


def _describe_illegal(message: str, values: flags.FlagValues) -> str:
  """Names the type of a flag, in place of absl's internal error."""
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
  """Returns the error for an unknown flag, given without dashes."""
  bare = name.replace('-', '_')
  flag = _FLAG_FOR.get(bare, bare)
  setting = agents_registry.OTHER_NAMES.get(bare, bare)
  if flag in values:
    near = [flag]
  elif _is_of_agent(setting, values):
    near = [_CONFIG + setting]
  else:
    near = settings.nearest(name, values)
  hint = f" Did you mean '--{near[0]}'?" if near else ''
  if name == _CONFIG.removesuffix('.') and _has('agent', values):
    hint = f' Settings of the agent are --{_CONFIG}<name>=<value>.'
  return f"Unknown flag '--{name}'.{hint} --help lists all."
