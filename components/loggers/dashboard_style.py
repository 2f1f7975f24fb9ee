"""The colors and characters of the dashboard.

Colors are the terminal's own, so that they suit a light one and a dark one.
"""

from typing import NamedTuple

from rich import progress_bar, text

from repertory.components.loggers import sparkline

LABEL, VALUE, NOTE, ACCENT = 'dim', 'bold', 'dim', 'cyan'
GOOD, WATCH, BAD = 'green', 'yellow', 'bold red'

# Narrower than this, what goes side by side goes one below the other.
SIDE_BY_SIDE_WIDTH = 68


class Glyphs(NamedTuple):
  """The characters beyond ASCII, and what stands for them."""

  bullet: str
  times: str
  blocks: str


UNICODE = Glyphs('●', '×', sparkline.BLOCKS)
ASCII = Glyphs('*', 'x', sparkline.ASCII_BLOCKS)


def make_heading(name: str) -> text.Text:
  """Makes the title of a group."""
  return text.Text(name, style=f'bold not dim {ACCENT}')


def make_bar(
  done: int, total: int, width: int | None = None
) -> progress_bar.ProgressBar:
  """Makes a bar, as wide as there is room if no width is given."""
  return progress_bar.ProgressBar(
    total=total,
    completed=done,
    width=width,
    style='bright_black',
    complete_style=ACCENT,
    finished_style=GOOD,
  )
