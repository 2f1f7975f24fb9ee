"""Draws panels with Matplotlib, which nothing else imports."""

import io
import math
from collections.abc import Mapping, Sequence

import matplotlib
import matplotlib.figure
import matplotlib.lines
import matplotlib.ticker
import numpy as np

from repertory.launch.records import curves as curves_lib
from repertory.launch.records import quantities

# Okabe and Ito's colors, which the color-blind can tell apart, without black
# and yellow, of which one is not seen on dark ground and the other on light.
COLORS = (
  '#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00',
)  # fmt: skip
INK, FAINT = '#333333', '#dddddd'
_DASHES = ('-', (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))

_MAX_COLUMNS = 3
_PANEL_INCHES = 4.2, 2.9
_ONLY_PANEL_INCHES = 7.0, 4.3

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
  'xtick.color': INK,
  'ytick.color': INK,
}

Looks = Mapping[str, tuple[str, object]]


def looks(labels: Sequence[str]) -> Looks:
  """Returns color and dashes of each label, no two alike for 24 of them."""
  return {
    label: (COLORS[i % len(COLORS)], _DASHES[i // len(COLORS) % len(_DASHES)])
    for i, label in enumerate(labels)
  }


def save(
  panels: Sequence[curves_lib.Panel], labels: Sequence[str], path: str
) -> None:
  """Draws all panels in one figure, and writes it as its name ends.

  Args:
    panels: At least one.
    labels: Of all curves, in the order of the legend.
    path: Ends with .png or .svg.
  """
  kind = path.rpartition('.')[2].lower()
  with matplotlib.rc_context({**_STYLE, 'svg.hashsalt': 'repertory'}):
    figure = _draw_all(panels, labels)
    metadata = {'Date': None} if kind == 'svg' else {}
    figure.savefig(path, format=kind, dpi=160, metadata=metadata)


def to_svg(panel: curves_lib.Panel, labels: Sequence[str], salt: str) -> str:
  """Draws one panel without title and legend, for a page that has its own.

  Args:
    panel: It.
    labels: Of all curves of all panels, which have the same colors.
    salt: Another for each panel of a page, so that no names in it are equal.

  Returns:
    The element `<svg>`, its text as text.
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
    axes.set_xlabel(quantities.AXES[panel.over])
    file = io.StringIO()
    figure.savefig(file, format='svg', metadata={'Date': None})
  text = file.getvalue()
  return text[text.index('<svg') :]


def _draw_all(
  panels: Sequence[curves_lib.Panel], labels: Sequence[str]
) -> matplotlib.figure.Figure:
  num_columns = _count_columns(panels)
  num_rows = math.ceil(len(panels) / num_columns)
  width, height = _PANEL_INCHES if len(panels) > 1 else _ONLY_PANEL_INCHES
  figure = matplotlib.figure.Figure(
    figsize=(width * num_columns, height * num_rows + 0.4)
  )
  grid = figure.subplots(num_rows, num_columns, squeeze=False)
  look_of = looks(labels)
  for index, axes in enumerate(grid.flat):
    if index >= len(panels):
      axes.set_visible(False)
      continue
    panel = panels[index]
    _draw(axes, panel, look_of)
    axes.set_title(panel.environment)
    if index % num_columns == 0 or (
      panel.quantity.title != panels[index - 1].quantity.title
    ):
      axes.set_ylabel(panel.quantity.title)
    if index + num_columns >= len(panels):
      axes.set_xlabel(quantities.AXES[panel.over])
  drawn = {curve.label for panel in panels for curve in panel.curves}
  handles = [
    matplotlib.lines.Line2D([], [], color=color, linestyle=dash, linewidth=2)
    for label, (color, dash) in look_of.items()
    if label in drawn
  ]
  figure.legend(
    handles,
    [_describe(label, panels) for label in labels if label in drawn],
    loc='outside upper left',
    ncols=max(1, min(len(handles), num_columns if num_columns > 1 else 2)),
  )
  return figure


def _count_columns(panels: Sequence[curves_lib.Panel]) -> int:
  """Returns how many panels are side by side: environments, if those fit."""
  num_environments = len({panel.environment for panel in panels})
  num_quantities = len({panel.quantity.name for panel in panels})
  if (
    1 < num_environments <= _MAX_COLUMNS
    and num_quantities > 1
    and len(panels) == num_environments * num_quantities
  ):
    return num_environments
  return min(_MAX_COLUMNS, len(panels))


def _describe(label: str, panels: Sequence[curves_lib.Panel]) -> str:
  """Returns a label with the number of seeds, of which an interval speaks."""
  sizes = {
    curve.size
    for panel in panels
    for curve in panel.curves
    if curve.label == label
  }
  least, most = min(sizes), max(sizes)
  number = f'{least}' if least == most else f'{least} to {most}'
  return f'{label} ({number} seed{"s" if most > 1 else ""})'


def _draw(axes, panel: curves_lib.Panel, look_of: Looks) -> None:
  """Draws curves: faint where not all runs have come so far."""
  if panel.quantity.reference is not None:
    axes.axhline(
      panel.quantity.reference, color=INK, linewidth=1, linestyle=(0, (2, 2))
    )
  for curve in panel.curves:
    color, dash = look_of[curve.label]
    low, high = curve.interval
    is_known = ~np.isnan(low)
    axes.fill_between(
      curve.x, low, high, where=is_known, color=color, alpha=0.18, linewidth=0
    )
    is_whole = curve.num_runs == curve.size
    thin = {'linewidth': 0.9, 'alpha': 0.7}
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
  axes.set_xlim(left=0 if panel.over != 'seconds' else None)
  axes.margins(x=0.02)
  axes.tick_params(length=3)
  for axis, number in ((axes.xaxis, 5), (axes.yaxis, 6)):
    axis.set_major_locator(matplotlib.ticker.MaxNLocator(number))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(_write))


def _write(value: float, position: object = None) -> str:
  """Writes a number with thousands separators, without needless zeros."""
  del position
  if value and abs(value) < 1e-3:
    return f'{value:.1e}'
  text = f'{value:,.6f}'.rstrip('0').rstrip('.')
  return text.replace('-', '−')  # The sign, as long as a digit.
