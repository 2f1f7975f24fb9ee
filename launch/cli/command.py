"""Commands, and their registry, which finds them by file name."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from absl import flags

from repertory.launch.experiments import registries

DONE = 0
FAILED = 1
BAD_INPUT = 2
NOT_SAVED = 3


@dataclasses.dataclass(frozen=True)
class Command:
  """A command of `repertory`.

  Attributes:
    usage: Its arguments, in one line.
    description: Description, in one line.
    flag_table: Name, kind, default and help text of its flags.
    run: Function of the flags, the settings of `--config.` and
      `--reward_model.` (see `typed.read`), and the other arguments, that
      returns the exit code.
    groups: Names of flags by heading, for the help; others come last.
  """

  usage: str
  description: str
  flag_table: Sequence[tuple]
  run: Callable[[flags.FlagValues, Mapping[str, str], Sequence[str]], int]
  groups: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)


REGISTRY = registries.Registry[Command](
  'repertory.launch.cli', 'command', '_command'
)


def expect_no_arguments(positional: Sequence[str]) -> None:
  """Raises ValueError if there is anything but flags."""
  if positional:
    raise ValueError(
      f'arguments must be flags, --name=value; got {" ".join(positional)}.'
    )


def expect_no_settings(settings: Mapping[str, str], why: str) -> None:
  """Raises ValueError if there is a `--config.<name>`.

  Args:
    why: Beginning of the message, which gives the reason.
  """
  if settings:
    raise ValueError(f'{why}, got {sorted(settings)}.')


def count_episodes(number: int) -> str:
  """Returns a number of episodes in words."""
  return '1 episode' if number == 1 else f'{number} episodes'
