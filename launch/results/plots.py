"""Figures of runs: learning curves over seeds, by environment.

Importing it raises ImportError without the extra 'plots'.
"""

import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from repertory.components.config import choices
from repertory.components.config.settings import SettingError
from repertory.launch.results import curves as curves_lib
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import runs as runs_lib
from repertory.launch.results import wording

try:
  import matplotlib
  import matplotlib.figure
  import matplotlib.ticker
except ImportError as error:
  raise ImportError(
    f"Figures need the package {error.name}: pip install 'repertory[plots]'.",
    name=error.name,
  ) from error

_ENDINGS = ('.png', '.svg')

# Okabe and Ito's colors for the color-blind, without black and yellow.
COLORS = (
  '#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00',
)  # fmt: skip
_DASHES = ('-', (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))

_MAX_COLUMNS = 3
_PANEL_INCHES = 5.0, 3.3

_STYLE = {
  'axes.axisbelow': True,
  'axes.grid': True,
  'axes.grid.axis': 'y',
  'axes.spines.right': False,
  'axes.spines.top': False,
  'axes.titlelocation': 'left',
  'axes.titlesize': 11,
  'axes.titleweight': 'bold',
  'figure.constrained_layout.use': True,
  'grid.color': '#dddddd',
  'legend.frameon': False,
  'svg.hashsalt': 'repertory',
  'text.parse_math': False,  # Names may have dollar signs.
}


def plot(
  runs: Sequence[runs_lib.RunRecord],
  output: str,
  what: Sequence[str] = ('return',),
  over: str = 'steps',
  statistic: str = 'mean',
) -> Sequence[str]:
  """Plots learning curves of groups of runs that differ in the seed only.

  There is a panel for each quantity on each environment. Bands are 95 %
  bootstrap intervals over seeds. Lines are thin where some seeds have no data.

  Args:
    runs: The runs, as returned by `find`.
    output: Path of the file, which ends with .png or .svg; its folder is made.
    what: Names of quantities, see `curves.choose`.
    over: The x-axis: 'steps', 'learner_steps' or 'elapsed_seconds'.
    statistic: Statistic over seeds: 'mean' or 'iqm', the interquartile mean.

  Returns:
    Notes on runs that were left out.

  Raises:
    SettingError: If an argument is wrong, there is nothing to draw, or the file
      cannot be written.
  """
  check(output, over, statistic)
  grouped = groups_lib.group(runs)
  chosen = [
    quantity
    for name in what or ('',)
    for quantity in curves_lib.choose(name, runs)
  ]
  panels = curves_lib.make_panels(grouped, chosen, over, statistic)
  if not panels:
    raise SettingError(
      'what',
      f'must be in the logs; got {", ".join(what)}, of which '
      f'none of {len(runs)} runs has a row.',
    )
  file_format = output.rpartition('.')[2].lower()
  write(output, draw(panels, grouped.labels, file_format))
  return grouped.notes


def check(
  output: str,
  over: str,
  statistic: str,
  endings: Sequence[str] = _ENDINGS,
) -> None:
  """Checks arguments of `plot` and of reports."""
  if not output.lower().endswith(tuple(endings)):
    raise SettingError(
      'output', f'must end with {" or ".join(endings)}; got {output!r}.'
    )
  if os.path.isdir(output):
    raise SettingError('output', f'must be a file; {output} is a folder.')
  choices.check('over', over, curves_lib.AXES)
  choices.check('statistic', statistic, curves_lib.STATISTICS)


def write(output: str, content: bytes) -> None:
  """Writes a file, and makes its folder; raises SettingError if it cannot."""
  try:
    os.makedirs(os.path.dirname(output) or '.', exist_ok=True)
    with open(output, 'wb') as file:
      file.write(content)
  except OSError as error:
    raise SettingError(
      'output', f'must be writable; got {output}: {error.strerror or error}.'
    ) from error


def draw(
  panels: Sequence[curves_lib.Panel],
  labels: Sequence[str],
  file_format: str,
) -> bytes:
  """Draws panels side by side, with a legend; returns the file's content.

  Args:
    panels: At least one panel.
    labels: Labels of all groups. Up to 24 differ in color or dashes.
    file_format: 'png' or 'svg'.
  """
  num_environments = len({panel.environment for panel in panels})
  num_columns = num_environments if num_environments > 1 else len(panels)
  num_columns = min(num_columns, _MAX_COLUMNS)
  num_rows = -(-len(panels) // num_columns)
  width, height = _PANEL_INCHES
  with matplotlib.rc_context(_STYLE):
    figure = matplotlib.figure.Figure((width * num_columns, height * num_rows))
    grid = figure.subplots(num_rows, num_columns, squeeze=False).ravel()
    for axes in grid[len(panels) :]:
      axes.set_visible(False)
    lines: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    for axes, panel in zip(grid, panels):
      for curve in panel.curves:
        place = labels.index(curve.label)
        lines[curve.label] = _draw_curve(axes, curve, place)
        sizes[curve.label] = max(curve.size, sizes.get(curve.label, 0))
      _set_axes(axes, panel)
    texts = [
      f'{wording.text(label)} ({size} {"seed" if size == 1 else "seeds"})'
      for label, size in sizes.items()
    ]
    # Above the figure, which is enlarged for it when it is saved.
    figure.legend(
      [lines[label] for label in sizes],
      texts,
      loc='lower left',
      bbox_to_anchor=(0, 1),
      ncols=num_columns,
    )
    file = io.BytesIO()
    figure.savefig(
      file,
      format=file_format,
      dpi=160,
      metadata={'Date': None} if file_format == 'svg' else {},
      bbox_inches='tight',
    )
  return file.getvalue()


def _draw_curve(axes, curve: curves_lib.Curve, place: int) -> Any:
  """Draws a curve, thin where some runs have no data; returns its line."""
  color = COLORS[place % len(COLORS)]
  dash = _DASHES[place // len(COLORS) % len(_DASHES)]
  band = {'where': ~np.isnan(curve.low), 'alpha': 0.18, 'linewidth': 0}
  axes.fill_between(curve.x, curve.low, curve.high, color=color, **band)
  marker = 'o' if len(curve.x) == 1 else None
  axes.plot(
    curve.x, curve.middle, marker=marker, color=color, linewidth=0.9, alpha=0.7
  )
  whole = np.where(curve.num_runs == curve.size, curve.middle, np.nan)
  (line,) = axes.plot(
    curve.x, whole, color=color, linestyle=dash, linewidth=1.9
  )
  return line


def _set_axes(axes, panel: curves_lib.Panel) -> None:
  axes.set_title(wording.text(panel.environment))
  axes.set_xlabel(panel.x_title)
  axes.set_ylabel(wording.text(panel.quantity.title))
  axes.margins(x=0.02)
  axes.set_xlim(left=0)
  axes.tick_params(length=3)
  for axis, number in ((axes.xaxis, 5), (axes.yaxis, 6)):
    axis.set_major_locator(matplotlib.ticker.MaxNLocator(number))
    axis.set_major_formatter('{x:,.9g}')
