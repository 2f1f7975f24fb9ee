"""`repertory <command>`: runs a command, and reports its failure.

Flags are read in this package only: they do not reach other processes.
"""

import contextlib
import importlib.metadata
import platform
import signal
import sys
from collections.abc import Sequence

from absl import flags

from repertory import __version__
from repertory.components.config import settings as settings_lib
from repertory.components.runtime import signals
from repertory.launch.cli import command
from repertory.launch.cli import errors as flag_errors
from repertory.launch.experiments import failures
from repertory.launch.platform import interrupts
from repertory.launch.results import wording
from repertory.launch.trained import videos


def run(arguments: Sequence[str]) -> int:
  """Runs a command.

  Args:
    arguments: Arguments after `repertory` on the command line.

  Returns:
    The exit code.
  """
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
      f'repertory {name}', rest, values
    )
    if not chosen.takes_arguments:
      command.expect_no_arguments(positional)
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
    return _report_failure(error, values)


def _report_failure(error: failures.NodeError, values: flags.FlagValues) -> int:
  """Prints the failure of a node; returns the exit code."""
  failure, message = error.failure, str(error)
  if failure.refused is not None:
    refusal = settings_lib.SettingError(*failure.refused)
    message = flag_errors.describe(refusal, values).rstrip('.')
    message = f"{message}. Raised in node '{failure.node}'."
  _print_error(f'\nrepertory: {message.rstrip()}')
  return command.BAD_INPUT if failure.is_bad_input else command.FAILED


def _describe_stack() -> str:
  """Returns the versions of the stack, without importing TensorFlow."""
  versions = {
    'TensorFlow': _version_of('tensorflow-cpu') or _version_of('tensorflow'),
    'Reverb': _version_of('dm-reverb'),
    'Launchpad': _version_of('dm-launchpad'),
  }
  found = [f'{k} {v}' if v else f'no {k}' for k, v in versions.items()]
  return ', '.join([f'Python {platform.python_version()}', *found])


def _version_of(distribution: str) -> str | None:
  """Returns the version of a distribution; None if not installed."""
  with contextlib.suppress(importlib.metadata.PackageNotFoundError):
    return importlib.metadata.version(distribution)
  return None


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
