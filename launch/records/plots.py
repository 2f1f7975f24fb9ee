"""Figures of runs: curves over seeds, on all environments."""

import importlib
from collections.abc import Sequence
from typing import Any

from repertory.components.settings import SettingError
from repertory.launch.records import curves as curves_lib
from repertory.launch.records import groups as groups_lib
from repertory.launch.records import outputs
from repertory.launch.records import quantities as quantities_lib
from repertory.launch.records import runs as runs_lib

ENDINGS = ('.png', '.svg')


def plot(
  runs: Sequence[runs_lib.Run],
  output: str,
  what: Sequence[str] = ('return',),
  over: str = 'steps',
  statistic: str = 'mean',
) -> list[str]:
  """Draws runs: a curve for those equal but for the seed, with an interval.

  A panel for each quantity on each environment. The band is the 95 % bootstrap
  interval over seeds. A thin line goes on where not all seeds have come so far.

  Args:
    runs: Such as `find` returns.
    output: A file whose name ends with .png or .svg; its folder is made.
    what: Names of quantities, see `quantities.choose`.
    over: 'steps', 'learner_steps' or 'elapsed_seconds'.
    statistic: Over seeds: 'mean' or 'iqm', the interquartile mean.

  Returns:
    What could not be drawn, and why, in words.

  Raises:
    SettingError: If one of them is wrong, there is nothing to draw, or the file
      cannot be written.
    ImportError: Without Matplotlib, saying how to install it.
  """
  check(output, over, statistic)
  grouped = groups_lib.group(runs)
  chosen = [
    quantity
    for name in what or ('',)
    for quantity in quantities_lib.choose(name, runs)
  ]
  panels = curves_lib.make_panels(grouped, chosen, over, statistic)
  if not panels:
    raise SettingError(
      'what',
      f'must be something that the logs tell; got {", ".join(what)}, of which '
      f'none of {len(runs)} runs has a row.',
    )
  kind = output.rpartition('.')[2].lower()
  with outputs.replacing(output) as path:
    load_drawing().save(panels, grouped.labels, path, kind)
  return [*grouped.notes, *_find_missing(grouped, chosen, panels)]


def check(
  output: str,
  over: str,
  statistic: str,
  endings: Sequence[str] = ENDINGS,
) -> None:
  """Raises what `plot` would, for what can be told without a look at runs."""
  outputs.check(output, endings)
  curves_lib.check(over, statistic)
  load_drawing()


def load_drawing() -> Any:
  """Imports what draws.

  Raises:
    ImportError: Without Matplotlib.
  """
  try:
    return importlib.import_module('repertory.launch.records.drawing')
  except ImportError as error:
    if (error.name or '').partition('.')[0] != 'matplotlib':
      raise
    raise ImportError(
      "Figures need the package matplotlib: pip install 'repertory[plots]'.",
      name='matplotlib',
    ) from error


def _find_missing(
  grouped: groups_lib.Grouped,
  chosen: Sequence[quantities_lib.Quantity],
  panels: Sequence[curves_lib.Panel],
) -> list[str]:
  """Says which groups do not tell a quantity that others do."""
  drawn = {
    (panel.quantity.name, panel.environment, curve.label)
    for panel in panels
    for curve in panel.curves
  }
  return [
    f'{group.label} on {group.environment} has no {quantity.title}'
    for quantity in chosen
    for group in grouped.groups
    if quantity.agent in (None, group.agent)
    and (quantity.name, group.environment, group.label) not in drawn
  ]
