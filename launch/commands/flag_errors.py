"""Errors that name what was typed, where they name arguments of Python."""

import dataclasses
import re

from absl import flags

from repertory.agents import registry as agents_registry
from repertory.launch.commands import flag_tables

# An argument or a setting at the beginning of an error.
_ARGUMENT = re.compile(r'(config\.)?(\w+)(?= of | must | is no )')
# Flags that are not called like the argument they set.
_FLAG_OF = {'max_steps': 'steps', 'launch_type': 'lp_launch_type'}
# What an error tells users of Python to write.
_ADVICE = re.compile(r"\b(\w+)=(?:'(\w+)'|True\b)")

_ILLEGAL = re.compile(r'flag --(\w+)=(.*?): .*', re.DOTALL)
_KINDS = {'int': 'an integer', 'float': 'a number', 'bool': 'true or false'}


def name_flags(message: str, values: flags.FlagValues) -> str:
  """Says in an error what is to be typed.

  Args:
    message: What is wrong is the word it begins with. Advice may be in its last
      line, after a traceback, such as fresh=True.
    values: The flags of the command.
  """
  *before, last = message.rstrip().split('\n')
  message = '\n'.join([*before, _ADVICE.sub(_type_advice, last)])
  if message.startswith('`') and 'env' in values:  # Of environments.
    return f'--env: {message.removeprefix("`name`: ")}'
  match = _ARGUMENT.match(message)
  if match is None:
    return message
  is_setting, name = match.groups()
  rest = message[match.end() :]
  flag = _FLAG_OF.get(name, name)
  if flag in values and not is_setting:
    return f'--{flag}{rest}'
  if 'agent' in values and (is_setting or name in _setting_names()):
    return f'--config.{name}{rest}'
  return message


def describe_illegal(message: str, values: flags.FlagValues) -> str:
  """Says what a flag takes, where absl says what failed inside of it.

  Args:
    message: Of absl's error.
    values: The flags of the command.
  """
  match = _ILLEGAL.fullmatch(message)
  if match is None or match[1] not in values:
    return message
  name, value = match.groups()
  kind = _KINDS.get(values[name].flag_type())
  if kind is None:
    return message
  hint = agents_registry.write_whole(value) if kind == 'an integer' else ''
  return f'--{name} must be {kind}, got {value!r}.{hint}'


def describe_unknown(name: str, values: flags.FlagValues) -> str:
  """Says that a command has no such flag.

  Args:
    name: Of the flag, without dashes.
    values: The flags of the command.
  """
  hint = agents_registry.did_you_mean(name, values)
  return f"Unknown flag '--{name}'.{hint} --help lists all."


def _type_advice(match: re.Match) -> str:
  name, value = match.groups()
  if name not in {flag for flag, *_ in flag_tables.TRAIN_FLAGS}:
    return match[0]
  return f'--{name}={value}' if value else f'--{name}'


def _setting_names() -> set[str]:
  return {
    field.name
    for agent in agents_registry.agents()
    for field in dataclasses.fields(agent.config_class)
  }
