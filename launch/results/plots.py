"""Figures of runs: learning curves over seeds, by environment."""

import contextlib
import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from repertory.components.config.settings import SettingError, did_you_mean
from repertory.launch.results import curves as curves_lib
from repertory.launch.results import groups as groups_lib
from repertory.launch.results import runs as runs_lib

ENDINGS = ('.png', '.svg')
DRAWING = 'repertory.launch.results.drawing'


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
    ImportError: Without Matplotlib.
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
    load(DRAWING).save(panels, grouped.labels, path, kind)
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
  endings: Sequence[str] = ENDINGS,
) -> None:
  """Checks the arguments of `plot`, without reading runs."""
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
  load(DRAWING)


def load(name: str) -> Any:
  """Imports a module that needs the extra 'plots'.

  Raises:
    ImportError: Without the extra.
  """
  try:
    return importlib.import_module(name)
  except ImportError as error:
    missing = (error.name or '').partition('.')[0]
    if missing not in ('matplotlib', 'jinja2'):
      raise
    raise ImportError(
      f"Figures need the package {missing}: pip install 'repertory[plots]'.",
      name=missing,
    ) from error


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
