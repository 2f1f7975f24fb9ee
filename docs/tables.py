"""Tables in the docs that are generated from the code."""

import re

from repertory.agents.interface import registry
from repertory.agents.reward_models import registry as reward_models
from repertory.components.config import settings as settings_lib
from repertory.launch.cli import flags as flags_lib

_STATED = re.compile(r'; default: (.*?)(?=\.(?:\s|$))')
_CODE = re.compile(r'--[\w.<>=]*[\w>]|[\w./:<>=]*[_<][\w./:<>=]*[\w>]')


def flag_rows(group: str) -> list[tuple[str, str, str]]:
  """Returns name, default and meaning of the flags under a heading of the help.

  Args:
    group: One of `flags_lib.TRAIN_GROUPS`.
  """
  known = {
    name: (value, text) for name, _, value, text in flags_lib.TRAIN_FLAGS
  }
  return [_row(name, *known[name]) for name in flags_lib.TRAIN_GROUPS[group]]


def flags(group: str) -> list[str]:
  """Returns the lines of a table of flags; see `flag_rows`."""
  return ['| Flag | Default | Meaning |', '| --- | --- | --- |'] + [
    f'| `--{name}` | {_mark_code(default)} | {_mark_code(meaning)} |'
    for name, default, meaning in flag_rows(group)
  ]


def settings(name: str) -> list[str]:
  """Returns the lines of a table of an agent's or a reward model's settings."""
  models = {m.name: m.config_class for m in reward_models.reward_models()}
  owner = models.get(name) or registry.get(name).config_class
  return [
    '| Setting | Default | Meaning, and where the default comes from |',
    '| --- | --- | --- |',
    *(
      f'| `{s.name}` | `{s.default}` | {s.help} |'
      for s in settings_lib.describe(owner)
    ),
  ]


def _row(name: str, value, text: str) -> tuple[str, str, str]:
  if value is not None:
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return name, f'`{shown}`', text
  # Without a fixed value, the text describes the default.
  stated = set(_STATED.findall(text))
  if len(stated) != 1:
    raise ValueError(
      f'The help of --{name} must state one default, got {sorted(stated)}.'
    )
  return name, stated.pop(), _STATED.sub('', text)


def _mark_code(text: str) -> str:
  """Puts flags and identifiers into backticks, unless they are in some."""
  parts = text.split('`')
  parts[::2] = [_CODE.sub(r'`\g<0>`', part) for part in parts[::2]]
  return '`'.join(parts)
