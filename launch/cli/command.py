"""Commands, and their registry, which finds them by file name."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from absl import flags

from repertory.launch.experiments import registries

DONE = 0
FAILED = 1
BAD_INPUT = 2
NOT_SAVED = 3

# Function of the flags, the settings of `--config.` and `--reward_model.` (see
# `typed.read`), and the other arguments, that returns the exit code.
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


def expect_no_arguments(positional: Sequence[str]) -> None:
  """Raises ValueError if there is anything but flags."""
  if positional:
    raise ValueError(
      f'arguments must be flags, --name=value; got {" ".join(positional)}.'
    )


def count_episodes(number: int) -> str:
  """Returns a number of episodes in words."""
  return '1 episode' if number == 1 else f'{number} episodes'
