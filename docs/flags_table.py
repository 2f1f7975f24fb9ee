"""Tables of the flags of `repertory train`, for `flags.md`."""

import re

from repertory.launch.cli import flags

_STATED = re.compile(r'; default: (.*?)(?=\.(?:\s|$))')
_CODE = re.compile(r'--[\w.<>=]*[\w>]|[\w./:<>=]*[_<][\w./:<>=]*[\w>]')


def rows(group: str) -> list[tuple[str, str, str]]:
  """Returns name, default and meaning of the flags under a heading of the help.

  Args:
    group: One of `flags.TRAIN_GROUPS`.
  """
  known = {name: (value, text) for name, _, value, text in flags.TRAIN_FLAGS}
  return [_row(name, *known[name]) for name in flags.TRAIN_GROUPS[group]]


def markdown(group: str) -> list[str]:
  """Returns the lines of a table in Markdown; see `rows`."""
  return ['| Flag | Default | Meaning |', '| --- | --- | --- |'] + [
    f'| `--{name}` | {_mark_code(default)} | {_mark_code(meaning)} |'
    for name, default, meaning in rows(group)
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
