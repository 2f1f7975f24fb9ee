"""Draws panels with Matplotlib; the only module that imports it."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import matplotlib.figure
import matplotlib.lines
import matplotlib.ticker
import numpy as np

from repertory.launch.results import curves as curves_lib
from repertory.launch.results import wording

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

Looks = Mapping[str, tuple[str, Any]]


def looks(labels: Sequence[str]) -> Looks:
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


def save(
  panels: Sequence[curves_lib.Panel],
  labels: Sequence[str],
  path: str,
  kind: str,
) -> None:
  """Draws all panels in one figure, and saves it.

  Args:
    panels: The panels, at least one.
    labels: Labels of all curves, in the order of the legend.
    path: Path of the file.
    kind: 'png' or 'svg'.
  """
  with matplotlib.rc_context({**_STYLE, 'svg.hashsalt': 'repertory'}):
    figure = _draw_all(panels, labels)
    metadata = {'Date': None} if kind == 'svg' else {}
    figure.savefig(
      path, format=kind, dpi=160, metadata=metadata, bbox_inches='tight'
    )


def to_svg(panel: curves_lib.Panel, labels: Sequence[str], salt: str) -> str:
  """Draws one panel without title and legend, for an HTML page.

  Args:
    panel: The panel.
    labels: Labels of all curves of all panels, which share their colors.
    salt: Unique text for each panel of a page, so that no ids collide.

  Returns:
    The element `<svg>`, with text as text instead of paths, and variables of
    the page's style in place of colors.
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
  """Returns rows of panels, with None for empty cells.

  Each quantity starts a row, with a column for each environment. For a single
  environment, quantities are side by side.
  """
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


def _draw(axes, panel: curves_lib.Panel, look_of: Looks) -> None:
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
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(_write))


def _write(value: float, position: object = None) -> str:
  """Writes a number with thousands separators, without needless zeros."""
  del position
  if value and abs(value) < 1e-3:
    return f'{value:.1e}'
  return f'{value:,.6f}'.rstrip('0').rstrip('.').replace('-', '−')
