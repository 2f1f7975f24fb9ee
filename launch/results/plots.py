"""Figures of runs: learning curves over seeds, by environment.

Importing it raises ImportError without the extra 'plots'.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from repertory.components.config.settings import SettingError, did_you_mean
from repertory.launch.results import curves as curves_lib
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import runs as runs_lib
from repertory.launch.results import wording

try:
  import matplotlib
  import matplotlib.figure
  import matplotlib.lines
  import matplotlib.ticker
except ImportError as error:
  raise ImportError(
    f"Figures need the package {error.name}: pip install 'repertory[plots]'.",
    name=error.name,
  ) from error

_ENDINGS = ('.png', '.svg')

# Okabe and Ito's colors for the color-blind, without black, invisible on dark
# ground, and yellow, invisible on light ground.
COLORS = (
  '#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00',
)  # fmt: skip
_INK, _FAINT = '#333333', '#dddddd'
_DASHES = ('-', (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))

_MAX_COLUMNS = 3
_PANEL_INCHES = 4.2, 2.9
_ONLY_PANEL_INCHES = 7.0, 4.3
_MAX_LETTERS = 45  # Of labels beside each other in a legend.

_STYLE = {
  'axes.axisbelow': True,
  'axes.edgecolor': _INK,
  'axes.grid': True,
  'axes.grid.axis': 'y',
  'axes.labelcolor': _INK,
  'axes.spines.right': False,
  'axes.spines.top': False,
  'axes.titlecolor': _INK,
  'axes.titlelocation': 'left',
  'axes.titlesize': 11,
  'axes.titleweight': 'bold',
  'figure.constrained_layout.use': True,
  'font.family': 'sans-serif',
  'font.sans-serif': ['DejaVu Sans'],
  'font.size': 10,
  'grid.color': _FAINT,
  'grid.linewidth': 0.8,
  'legend.frameon': False,
  'savefig.transparent': False,
  'text.color': _INK,
  'text.parse_math': False,  # Names may have dollar signs.
  'xtick.color': _INK,
  'ytick.color': _INK,
}

_METADATA = re.compile(r'<metadata>.*?</metadata>', re.DOTALL)
_GROUP_NAME = re.compile(r'<g id="[^"]*"')


def plot(
  runs: Sequence[runs_lib.RunRecord],
  output: str,
  what: Sequence[str] = ('return',),
  over: str = 'steps',
  statistic: str = 'mean',
) -> list[str]:
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
    Notes on what could not be drawn.

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
  with replacing(output) as path:
    kind = output.rpartition('.')[2].lower()
    metadata = {'Date': None} if kind == 'svg' else {}
    with matplotlib.rc_context({**_STYLE, 'svg.hashsalt': 'repertory'}):
      _draw_all(panels, grouped.labels).savefig(
        path, format=kind, dpi=160, metadata=metadata, bbox_inches='tight'
      )
  drawn = {
    (panel.quantity.name, panel.environment, curve.label)
    for panel in panels
    for curve in panel.curves
  }
  missing = [
    f'{group.label} on {group.environment} has no {quantity.title}'
    for quantity in chosen
    for group in grouped.groups
    if quantity.agent in (None, group.agent)
    and (quantity.name, group.environment, group.label) not in drawn
  ]
  return [*grouped.notes, *missing]


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
  for name, value, known in (
    ('over', over, curves_lib.AXES),
    ('statistic', statistic, curves_lib.STATISTICS),
  ):
    if value not in known:
      raise SettingError(
        name,
        f'must be one of {", ".join(known)}; got {value!r}.'
        f'{did_you_mean(value, known)}',
      )


@contextlib.contextmanager
def replacing(output: str) -> Iterator[str]:
  """Yields a temporary path, which replaces a file at the end of the block."""
  temporary = f'{output}.{os.getpid()}.tmp'
  try:
    os.makedirs(os.path.dirname(output) or '.', exist_ok=True)
    yield temporary
    os.replace(temporary, output)
  except OSError as error:
    raise SettingError(
      'output', f'must be writable; got {output}: {error.strerror or error}.'
    ) from error
  finally:
    with contextlib.suppress(OSError):
      os.remove(temporary)


def looks(labels: Sequence[str]) -> Mapping[str, tuple[str, Any]]:
  """Returns color and dashes of each label, unique for up to 24."""
  return {
    label: (COLORS[i % len(COLORS)], _DASHES[i // len(COLORS) % len(_DASHES)])
    for i, label in enumerate(labels)
  }


def legend(labels: Sequence[str]) -> list[tuple[int, str, str]]:
  """Returns index of the color, dashes in SVG, and label, for an HTML page."""
  return [
    (
      COLORS.index(color),
      '' if dashes == '-' else ' '.join(f'{3 * n:g}' for n in dashes[1]),
      label,
    )
    for label, (color, dashes) in looks(labels).items()
  ]


def to_svg(panel: curves_lib.Panel, labels: Sequence[str], salt: str) -> str:
  """Draws one panel without title and legend, for an HTML page.

  The salt must differ between panels of a page, so that no ids collide. Colors
  are variables of the page's style.
  """
  style = {
    **_STYLE,
    'svg.fonttype': 'none',
    'svg.hashsalt': salt,
    'savefig.transparent': True,
  }
  with matplotlib.rc_context(style):
    figure = matplotlib.figure.Figure(figsize=_PANEL_INCHES)
    _draw(figure.add_subplot(), panel, looks(labels))
    file = io.StringIO()
    figure.savefig(file, format='svg', metadata={'Date': None})
  text = file.getvalue()
  text = _METADATA.sub('', text[text.index('<svg') :])
  text = _GROUP_NAME.sub('<g', text)  # All figures have the same ids.
  for index, color in enumerate(COLORS):
    text = text.replace(color, f'var(--series-{index})')
  return text.replace(_INK, 'currentColor').replace(_FAINT, 'var(--line)')


def _draw_all(
  panels: Sequence[curves_lib.Panel], labels: Sequence[str]
) -> matplotlib.figure.Figure:
  rows = _lay_out(panels)
  num_columns = max(map(len, rows))
  width, height = _PANEL_INCHES if len(panels) > 1 else _ONLY_PANEL_INCHES
  figure = matplotlib.figure.Figure(
    figsize=(width * num_columns, height * len(rows))
  )
  grid = figure.subplots(len(rows), num_columns, squeeze=False)
  for axes in grid.flat:
    axes.set_visible(False)
  for axes_of_row, row in zip(grid, rows):
    for axes, panel in zip(axes_of_row, row):
      if panel is not None:
        axes.set_visible(True)
        _draw(axes, panel, looks(labels))
        axes.set_title(wording.text(panel.environment))
        axes.set_ylabel(wording.text(panel.quantity.title))
  sizes: dict[str, set[int]] = {}
  for panel in panels:
    for curve in panel.curves:
      sizes.setdefault(curve.label, set()).add(curve.size)
  handles, texts = [], []
  for label, (color, dash) in looks(labels).items():
    if label in sizes:
      style = {'color': color, 'linestyle': dash, 'linewidth': 2}
      handles.append(matplotlib.lines.Line2D([], [], **style))
      least, most = min(sizes[label]), max(sizes[label])
      number = f'{least}' if least == most else f'{least} to {most}'
      seeds = f'{number} seed{"s" if most > 1 else ""}'
      texts.append(f'{wording.text(label)} ({seeds})')
  is_short = max(map(len, texts)) <= _MAX_LETTERS
  # Above the figure, which is enlarged for it when it is saved.
  figure.legend(
    handles,
    texts,
    loc='lower left',
    bbox_to_anchor=(0, 1),
    ncols=max(num_columns, 2) if is_short else 1,
  )
  return figure


def _lay_out(
  panels: Sequence[curves_lib.Panel],
) -> list[list[curves_lib.Panel | None]]:
  """Returns a row per quantity, or a single one for a single environment."""
  environments = sorted({panel.environment for panel in panels})
  parts: list[list[curves_lib.Panel | None]] = [list(panels)]
  if len(environments) > 1:
    by_title: dict[str, dict[str, curves_lib.Panel]] = {}
    for panel in panels:
      by_title.setdefault(panel.quantity.title, {})[panel.environment] = panel
    parts = [list(map(one.get, environments)) for one in by_title.values()]
  return [
    part[start : start + _MAX_COLUMNS]
    for part in parts
    for start in range(0, len(part), _MAX_COLUMNS)
  ]


def _draw(
  axes, panel: curves_lib.Panel, look_of: Mapping[str, tuple[str, Any]]
) -> None:
  """Draws curves, thin where some runs have no data."""
  quantity = panel.quantity
  if quantity.reference is not None:
    axes.axhline(
      quantity.reference, color=_INK, linewidth=1, linestyle=(0, (2, 2))
    )
  for curve in panel.curves:
    color, dash = look_of[curve.label]
    low, high = curve.interval
    is_known = ~np.isnan(low)
    axes.fill_between(
      curve.x, low, high, where=is_known, color=color, alpha=0.18, linewidth=0
    )
    is_whole = curve.num_runs == curve.size
    thin: dict[str, Any] = {'linewidth': 0.9, 'alpha': 0.7}
    if len(curve.x) == 1:
      thin['marker'] = 'o'
    axes.plot(curve.x, curve.middle, color=color, **thin)
    axes.plot(
      curve.x,
      np.where(is_whole, curve.middle, np.nan),
      color=color,
      linestyle=dash,
      linewidth=1.9,
    )
  axes.margins(x=0.02)
  axes.set_xlim(left=0)
  if quantity.in_view is not None:
    low, high = quantity.in_view
    axes.update_datalim([(0, low), (0, high)])
    axes.autoscale_view()
    if low == 0:
      axes.set_ylim(bottom=0)
  axes.set_xlabel(curves_lib.AXES[panel.over])
  axes.tick_params(length=3)
  for axis, number in ((axes.xaxis, 5), (axes.yaxis, 6)):
    axis.set_major_locator(matplotlib.ticker.MaxNLocator(number))
    axis.set_major_formatter('{x:,.9g}')
