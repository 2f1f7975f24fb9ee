"""Commands, their registry by file name, and their arguments."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from absl import flags

from repertory.agents.reward_models import reward_model_config
from repertory.launch.experiments import registries

DONE = 0
FAILED = 1
BAD_INPUT = 2
NOT_SAVED = 3

_SETTINGS = ('--config.', f'--{reward_model_config.PREFIX}')
# The earlier name of --reward_model, which is still read.
_WRAP = re.compile(r'--wrap(?=[.=]|$)')
# The earlier form of --replay=reverb, which is still read.
_REPLAY_SERVER = re.compile(r'--replay_server(=true)?$')

# Entry of a flag in absl's help, up to the next one.
_ENTRY = re.compile(
  r'^  --(?:\[no\])?(\w+):.*?(?=^  --|\Z)', re.MULTILINE | re.DOTALL
)

# Function of the flags, the settings of `--config.` and `--reward_model.` (see
# `read_arguments`), and the other arguments, that returns the exit code.
Run: TypeAlias = Callable[
  [flags.FlagValues, Mapping[str, str], Sequence[str]], int
]


@dataclasses.dataclass(frozen=True)
class Command:
  """A command of `repertory`.

  Attributes:
    usage: Its arguments, in one line.
    description: Description, in one line.
    flag_table: Name, kind, default and help text of its flags.
    run: Runs the command.
    groups: Names of all flags by heading, for the help; may be empty.
    takes_settings: Whether `--config.` and `--reward_model.` are allowed.
    takes_arguments: Whether arguments other than flags are allowed.
  """

  usage: str
  description: str
  flag_table: Sequence[tuple]
  run: Run
  groups: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
  takes_settings: bool = False
  takes_arguments: bool = False


REGISTRY = registries.Registry[Command](
  'repertory.launch.cli', 'command', '_command'
)


def register(
  name: str, rank: int, usage: str, description: str, flag_table=(), **settings
) -> Callable[[Run], Run]:
  """Returns a decorator that registers a command; see `Command`."""

  def add(run: Run) -> Run:
    chosen = Command(usage, description, flag_table, run, **settings)
    REGISTRY.register(name, chosen, rank)
    return run

  return add


def count_episodes(number: int) -> str:
  """Returns a number of episodes in words."""
  return '1 episode' if number == 1 else f'{number} episodes'


def define_flags(flag_table: Iterable[tuple]) -> flags.FlagValues:
  """Defines the flags of a table, with their defaults."""
  values = flags.FlagValues()
  for flag, define_flag, default, text in flag_table:
    define_flag(flag, default, text, flag_values=values)
  return values


def describe_flags(
  values: flags.FlagValues, groups: Mapping[str, Sequence[str]]
) -> str:
  """Returns the help of all flags, by heading of their first group."""
  # Without absl's own flags.
  text = values.get_help(include_special_flags=False)
  text = re.sub(r'\n*^\S+:$', '', text, flags=re.MULTILINE)
  if not groups:
    return text
  entries = {entry[1]: entry[0].rstrip() for entry in _ENTRY.finditer(text)}
  lines = []
  for heading, names in groups.items():
    listed = [entries.pop(name) for name in names if name in entries]
    lines += [f'\n{heading}:', *listed]
  return '\n'.join(lines)


def read_arguments(
  program: str,
  arguments: Sequence[str],
  values: flags.FlagValues,
  takes_arguments: bool = False,
) -> tuple[dict[str, str], list[str]]:
  """Parses arguments into flags, which are set in `values`, and settings.

  Returns:
    The settings by their flags, `config.<name>` and `reward_model.<name>`; and
    the positional arguments.

  Raises:
    ValueError: If a setting has no value, or for unexpected arguments.
    flags.Error: If a flag is unknown, or its value has the wrong type.
  """
  settings, rest = {}, []
  iterator = iter(arguments)
  for argument in iterator:
    argument = _WRAP.sub(f'--{reward_model_config.REWARD_MODEL}', argument)
    argument = _REPLAY_SERVER.sub('--replay=reverb', argument)
    if not argument.startswith(_SETTINGS):
      rest.append(argument)
      continue
    name, equals, value = argument.removeprefix('--').partition('=')
    if not equals:
      value = next(iterator, None)
      if value is None or value.startswith('--'):
        raise ValueError(f'{argument} must be given a value, got none.')
    settings[name] = value
  positional = values([program, *rest])[1:]
  if positional and not takes_arguments:
    raise ValueError(
      f'arguments must be flags, --name=value; got {" ".join(positional)}.'
    )
  return settings, positional
