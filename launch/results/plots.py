"""Figures of runs: learning curves over seeds, by environment."""

import importlib
from collections.abc import Sequence
from typing import Any

from repertory.components.config.settings import SettingError
from repertory.launch.results import curves as curves_lib
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import outputs
from repertory.launch.results import quantities as quantities_lib
from repertory.launch.results import runs as runs_lib

ENDINGS = ('.png', '.svg')


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
    what: Names of quantities, see `quantities.choose`.
    over: The x-axis: 'steps', 'learner_steps' or 'elapsed_seconds'.
    statistic: Statistic over seeds: 'mean' or 'iqm', the interquartile mean.

  Returns:
    Notes on what could not be drawn.

  Raises:
    SettingError: If an argument is wrong, there is nothing to draw, or the file
      cannot be written.
    ImportError: Without Matplotlib.
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
      f'must be in the logs; got {", ".join(what)}, of which '
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
  """Checks the arguments of `plot`, without reading runs."""
  outputs.check(output, endings)
  curves_lib.check(over, statistic)
  load_drawing()


def load_drawing() -> Any:
  """Imports the module that draws with Matplotlib.

  Raises:
    ImportError: Without Matplotlib.
  """
  try:
    return importlib.import_module('repertory.launch.results.drawing')
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
  """Describes the quantities that some groups lack and others have."""
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
