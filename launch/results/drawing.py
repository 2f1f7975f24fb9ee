"""Draws panels with Matplotlib; the only module that imports it."""

import io
import itertools
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import matplotlib.figure
import matplotlib.lines
import matplotlib.ticker
import numpy as np

from repertory.launch.results import curves as curves_lib
from repertory.launch.results import quantities, wording

# Okabe and Ito's colors for the color-blind, without black, invisible on dark
# ground, and yellow, invisible on light ground.
COLORS = (
  '#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00',
)  # fmt: skip
INK, FAINT = '#333333', '#dddddd'
_DASHES = ('-', (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))

_MAX_COLUMNS = 3
_PANEL_INCHES = 4.2, 2.9
_ONLY_PANEL_INCHES = 7.0, 4.3
# Sizes in a legend: height of lines, width of handles and of a broad letter.
_LINE_INCHES, _HANDLE_INCHES, _LETTER_INCHES = 0.2, 0.6, 0.088

_STYLE = {
  'axes.axisbelow': True,
  'axes.edgecolor': INK,
  'axes.grid': True,
  'axes.grid.axis': 'y',
  'axes.labelcolor': INK,
  'axes.spines.right': False,
  'axes.spines.top': False,
  'axes.titlecolor': INK,
  'axes.titlelocation': 'left',
  'axes.titlesize': 11,
  'axes.titleweight': 'bold',
  'figure.constrained_layout.use': True,
  'font.family': 'sans-serif',
  'font.sans-serif': ['DejaVu Sans'],
  'font.size': 10,
  'grid.color': FAINT,
  'grid.linewidth': 0.8,
  'legend.frameon': False,
  'savefig.transparent': False,
  'text.color': INK,
  'text.parse_math': False,  # Names may have dollar signs.
  'xtick.color': INK,
  'ytick.color': INK,
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
    figure.savefig(path, format=kind, dpi=160, metadata=metadata)


def to_svg(panel: curves_lib.Panel, labels: Sequence[str], salt: str) -> str:
  """Draws one panel without title and legend, for an HTML page.

  Args:
    panel: The panel.
    labels: Labels of all curves of all panels, which share their colors.
    salt: Unique text for each panel of a page, so that no ids collide.

  Returns:
    The element `<svg>`, with text as text instead of paths.
  """
  style = {
    **_STYLE,
    'svg.fonttype': 'none',
    'svg.hashsalt': salt,
    'savefig.transparent': True,
  }
  with matplotlib.rc_context(style):
    figure = matplotlib.figure.Figure(figsize=_PANEL_INCHES)
    axes = figure.add_subplot()
    _draw(axes, panel, looks(labels))
    file = io.StringIO()
    figure.savefig(file, format='svg', metadata={'Date': None})
  text = file.getvalue()
  text = _METADATA.sub('', text[text.index('<svg') :])
  return _GROUP_NAME.sub('<g', text)  # All figures have the same ids.


def _draw_all(
  panels: Sequence[curves_lib.Panel], labels: Sequence[str]
) -> matplotlib.figure.Figure:
  rows = _lay_out(panels)
  num_columns = max(map(len, rows))
  width, height = _PANEL_INCHES if len(panels) > 1 else _ONLY_PANEL_INCHES
  figure = matplotlib.figure.Figure(
    figsize=(width * num_columns, height * len(rows) + 0.4)
  )
  grid = figure.subplots(len(rows), num_columns, squeeze=False)
  look_of = looks(labels)
  for axes, panel in zip(grid.flat, itertools.chain(*rows)):
    if panel is None:
      axes.set_visible(False)
      continue
    _draw(axes, panel, look_of)
    axes.set_title(wording.text(panel.environment))
    axes.set_ylabel(wording.text(panel.quantity.title))
  _add_legend(figure, panels, labels, num_columns)
  return figure


def _add_legend(
  figure: matplotlib.figure.Figure,
  panels: Sequence[curves_lib.Panel],
  labels: Sequence[str],
  num_columns: int,
) -> None:
  """Adds a legend above all panels, and enlarges the figure for it.

  Args:
    num_columns: Number of columns of panels. The legend has as many, but at
      least two, if the labels are short enough; else one, with wrapped lines.
  """
  look_of = looks(labels)
  drawn = {curve.label for panel in panels for curve in panel.curves}
  shown = [label for label in labels if label in drawn]
  handles = [
    matplotlib.lines.Line2D([], [], color=color, linestyle=dash, linewidth=2)
    for color, dash in map(look_of.__getitem__, shown)
  ]
  texts = [_describe(label, panels) for label in shown]
  width, height = figure.get_size_inches()
  num_columns = max(num_columns, 2)
  if max(map(len, texts)) > _num_letters(width / num_columns):
    num_columns = 1
    texts = [textwrap.fill(text, _num_letters(width)) for text in texts]
  num_lines = sum(text.count('\n') + 1 for text in texts) / num_columns
  figure.set_size_inches(width, height + _LINE_INCHES * (num_lines - 1))
  figure.legend(handles, texts, loc='outside upper left', ncols=num_columns)


def _num_letters(inches: float) -> int:
  """Returns the minimum number of letters that fit in a width."""
  return int((inches - _HANDLE_INCHES) / _LETTER_INCHES)


def _lay_out(
  panels: Sequence[curves_lib.Panel],
) -> list[list[curves_lib.Panel | None]]:
  """Returns rows of equal length, with None for empty cells.

  Each quantity starts a row, with a column for each environment. For a single
  environment, quantities are side by side.
  """
  environments = sorted({panel.environment for panel in panels})
  num_columns = min(_MAX_COLUMNS, max(len(environments), 1))
  parts = [list(panels)]
  if len(environments) == 1:
    num_columns = min(_MAX_COLUMNS, len(panels))
  else:
    by_name: dict[str, dict[str, curves_lib.Panel]] = {}
    for panel in panels:
      by_name.setdefault(panel.quantity.title, {})[panel.environment] = panel
    parts = [list(map(one.get, environments)) for one in by_name.values()]
  rows = []
  for part in parts:
    for start in range(0, len(part), num_columns):
      row = part[start : start + num_columns]
      rows.append(row + [None] * (num_columns - len(row)))
  return rows


def _describe(label: str, panels: Sequence[curves_lib.Panel]) -> str:
  """Returns a label with the number of seeds of its interval."""
  sizes = {
    curve.size
    for panel in panels
    for curve in panel.curves
    if curve.label == label
  }
  least, most = min(sizes), max(sizes)
  number = f'{least}' if least == most else f'{least} to {most}'
  seeds = f'{number} seed{"s" if most > 1 else ""}'
  return f'{wording.text(label)} ({seeds})'


def _draw(axes, panel: curves_lib.Panel, look_of: Looks) -> None:
  """Draws curves, thin where some runs have no data."""
  quantity = panel.quantity
  if quantity.reference is not None:
    axes.axhline(
      quantity.reference, color=INK, linewidth=1, linestyle=(0, (2, 2))
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
  axes.set_xlabel(quantities.AXES[panel.over])
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
