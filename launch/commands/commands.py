"""`repertory <command>`: finds the command, and tells how it failed.

Flags are read in this folder only: they do not reach other processes.
"""

import signal
import sys
from collections.abc import Sequence

from absl import flags

from repertory import __version__
from repertory.components import settings as settings_lib
from repertory.components import signals, videos
from repertory.launch import failures
from repertory.launch.commands import command
from repertory.launch.commands import errors as flag_errors
from repertory.launch.commands import flags as flag_tables
from repertory.launch.host import interrupts

_CONFIG_PREFIX = '--config.'

_TRAIN_FLAG_NAMES = frozenset(name for name, *_ in flag_tables.TRAIN_FLAGS)


def run(arguments: Sequence[str]) -> int:
  """Runs a command.

  Args:
    arguments: What follows `repertory` on the command line.

  Returns:
    The exit code.
  """
  if not arguments or arguments[0] in ('-h', '--help', 'help'):
    print(_overview())
    return command.DONE if arguments else command.BAD_INPUT
  name, *rest = arguments
  if name == '--version':
    print(f'repertory {__version__}')
    return command.DONE
  try:
    chosen = command.REGISTRY.get(name)
  except settings_lib.SettingError as error:
    return _complain(str(error))
  values = flags.FlagValues()
  for flag, define, default, text in chosen.flag_table:
    define(flag, default, text, flag_values=values)
  if any(argument in ('-h', '--help', '--helpfull') for argument in rest):
    print(f'repertory {name} {chosen.usage}\n\n{chosen.description}')
    print(values.get_help())
    return command.DONE
  try:
    settings, rest = _split_settings(rest)
    positional = values([f'repertory {name}', *rest])[1:]
    return chosen.run(values, settings, positional)
  except flags.IllegalFlagValueError as error:
    return _complain(flag_errors.describe_illegal(str(error), values))
  except flags.UnrecognizedFlagError as error:
    return _complain(flag_errors.describe_unknown(error.flagname, values))
  except (ValueError, ImportError, flags.Error) as error:
    return _complain(flag_errors.describe(error, values, _TRAIN_FLAG_NAMES))
  # Of an environment that was tried, a storage, or films.
  except (TimeoutError, signals.NoAnswerError, videos.VideoError) as error:
    print(f'repertory: {error}', file=sys.stderr)
    return command.FAILED
  except KeyboardInterrupt:
    print('repertory: interrupted', file=sys.stderr)
    return interrupts.EXIT_BASE + signal.SIGINT
  except failures.NodeError as error:
    print(f'\nrepertory: {str(error).rstrip()}', file=sys.stderr)
    return command.BAD_INPUT if error.failure.is_bad_input else command.FAILED


def _split_settings(
  arguments: Sequence[str],
) -> tuple[dict[str, str], list[str]]:
  """Takes out `--config.<name>=<value>` and `--config.<name> <value>`."""
  settings, rest = {}, []
  iterator = iter(arguments)
  for argument in iterator:
    if not argument.startswith(_CONFIG_PREFIX):
      rest.append(argument)
      continue
    name, equals, value = argument[len(_CONFIG_PREFIX) :].partition('=')
    if not equals:
      value = next(iterator, None)
      if value is None or value.startswith('--'):
        raise ValueError(f'{argument} must be given a value, got none.')
    settings[name] = value
  return settings, rest


def _complain(message: str) -> int:
  print(f'repertory: {message.strip()}', file=sys.stderr)
  return command.BAD_INPUT


def _overview() -> str:
  lines = ['repertory <command> [--help]', 'repertory --version', '']
  for name, one in command.REGISTRY.entries.items():
    lines.append(f'  {name:14}{one.description}')
  return '\n'.join(lines)
