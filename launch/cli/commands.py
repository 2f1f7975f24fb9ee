"""`repertory <command>`: runs a command, and reports its failure.

Flags are read in this package only: they do not reach other processes.
"""

import platform
import signal
import sys
from collections.abc import Sequence

from absl import flags

from repertory import __version__
from repertory.components.config import settings as settings_lib
from repertory.components.runtime import signals, versions
from repertory.launch import failures
from repertory.launch.cli import command
from repertory.launch.cli import errors as flag_errors
from repertory.launch.platform import interrupts
from repertory.launch.results import wording
from repertory.launch.trained import videos


def run(arguments: Sequence[str]) -> int:
  """Runs the arguments after `repertory`; returns the exit code."""
  if not arguments or arguments[0] in ('-h', '--help', 'help'):
    print(_overview())
    return command.DONE if arguments else command.BAD_INPUT
  name, *rest = arguments
  if name == '--version':
    print(f'repertory {__version__} with {_describe_stack()}')
    return command.DONE
  name = {'wrappers': 'reward_models'}.get(name, name)  # Its earlier name.
  try:
    chosen = command.REGISTRY.get(name)
  except settings_lib.SettingError as error:
    return _complain(str(error))
  values = command.define_flags(chosen.flag_table)
  if any(argument in ('-h', '--help', '--helpfull') for argument in rest):
    print(f'repertory {name} {chosen.usage}'.rstrip())
    described = command.describe_flags(values, chosen.groups)
    print(f'\n{chosen.description}\n{described}'.rstrip())
    return command.DONE
  try:
    settings, positional = command.read_arguments(
      f'repertory {name}', rest, values, chosen.takes_arguments
    )
    if settings and not chosen.takes_settings:
      names = ', '.join(sorted(settings))
      raise ValueError(f'`{name}` takes no config settings, got {names}.')
    return chosen.run(values, settings, positional)
  except (ValueError, ImportError, flags.Error) as error:
    return _complain(flag_errors.describe(error, values))
  # From a smoke test of an environment, a storage, or videos.
  except (TimeoutError, signals.NoAnswerError, videos.VideoError) as error:
    _print_error(f'repertory: {settings_lib.text_of(error)}')
    return command.FAILED
  except KeyboardInterrupt:
    print('repertory: interrupted', file=sys.stderr)
    return interrupts.EXIT_BASE + signal.SIGINT
  except failures.NodeError as error:
    _print_error(f'\nrepertory: {flag_errors.describe(error, values).rstrip()}')
    return command.BAD_INPUT if error.failure.is_bad_input else command.FAILED


def _describe_stack() -> str:
  """Returns stack and platform, without importing TensorFlow."""
  found = versions.describe(
    {'Python': platform.python_version(), **versions.installed()}
  )
  return f'{found}, on {platform.system()} {platform.machine()}'


def _complain(message: str) -> int:
  _print_error(f'repertory: {message.strip()}')
  return command.BAD_INPUT


def _print_error(message: str) -> None:
  """Prints a message to stderr, with unprintable characters escaped."""
  print('\n'.join(map(wording.text, message.split('\n'))), file=sys.stderr)


def _overview() -> str:
  lines = ['repertory <command> [--help]', 'repertory --version', '']
  for name, one in command.REGISTRY.entries.items():
    lines.append(f'  {name:14}{one.description}')
  return '\n'.join(lines)
