"""Colors and characters of the dashboard.

Colors are the terminal's own, to suit light and dark ones.
"""

from typing import NamedTuple

from rich import progress_bar, text

from repertory.components.loggers import sparkline

LABEL, VALUE, NOTE, ACCENT = 'dim', 'bold', 'dim', 'cyan'
GOOD, WATCH, BAD = 'green', 'yellow', 'bold red'

# Minimum width for groups side by side.
SIDE_BY_SIDE_WIDTH = 68


class Glyphs(NamedTuple):
  """Characters beyond ASCII, with replacements."""

  bullet: str
  times: str
  blocks: str


UNICODE = Glyphs('●', '×', sparkline.BLOCKS)
ASCII = Glyphs('*', 'x', sparkline.ASCII_BLOCKS)


def make_heading(name: str) -> text.Text:
  """Creates the heading of a group."""
  return text.Text(name, style=f'bold not dim {ACCENT}')


def make_bar(
  done: int, total: int, width: int | None = None
) -> progress_bar.ProgressBar:
  """Creates a progress bar that fills the available width by default."""
  return progress_bar.ProgressBar(
    total=total,
    completed=done,
    width=width,
    style='bright_black',
    complete_style=ACCENT,
    finished_style=GOOD,
  )
