"""How fast training goes on, by a short run and a long one.

And the flags of all that measures so.
"""

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import peer_processes
import peer_runs
import rich.table
from absl import app, flags

_CASES = flags.DEFINE_list('cases', None, 'Names of those to run; all if none.')
ROUNDS = flags.DEFINE_integer(
  'rounds', 3, 'How often each is measured.', lower_bound=1
)
SCALE = flags.DEFINE_float(
  'scale', 1.0, 'Factor of the lengths of runs.', lower_bound=0.001
)
CORES = flags.DEFINE_integer(
  'cores', 1, 'How many cores a run may use; 0 for all.', lower_bound=0
)
SECONDS = flags.DEFINE_float(
  'seconds', 1_800.0, 'How long a run may take.', lower_bound=1.0
)


class Speed(NamedTuple):
  """What a measurement tells.

  Attributes:
    rates: Environment steps per second of processor time, and per second.
    first_update: Processor time and time, in seconds, from the start of the
      process until the first update is made.
    is_bound: Whether that is of a whole run, which takes somewhat longer.
  """

  rates: tuple[float, float]
  first_update: tuple[float, float]
  is_bound: bool


def choose(known: Collection[str]) -> list[str]:
  """Returns the names of the cases that are asked for.

  Raises:
    app.UsageError: If there is none of such a name.
  """
  names = _CASES.value or list(known)
  unknown = sorted(set(names) - set(known))
  if unknown:
    raise app.UsageError(
      f'--cases must be of {", ".join(known)}; got {", ".join(unknown)}.'
    )
  return names


def measure(
  name: str, run: peer_runs.Run, scale: float, machine: peer_processes.Machine
) -> Speed:
  """Measures a run, and prints what was found.

  Args:
    name: What it is called there.
    scale: By how much the longer run is to be longer than it is written down.

  Raises:
    CannotRunError: If it fails, takes too long or is too short to tell.
  """
  few, many = run.steps
  many = few + round(scale * (many - few))
  short, long = (
    peer_processes.run(run.library, run.settings, steps, machine)
    for steps in (few, many)
  )
  steps = long.told['steps'] - short.told['steps']
  cpu, wall = long.cpu_seconds - short.cpu_seconds, long.seconds - short.seconds
  if steps <= 0 or cpu <= 0 or wall <= 0:
    raise peer_processes.CannotRunError(
      f'too few steps to tell: {steps} more took {cpu:.1f} CPU s and '
      f'{wall:.1f} s more'
    )
  told = short.told.get('first_update')
  if told is None and run.library != 'cleanrl':
    raise peer_processes.CannotRunError(f'no update in {few} steps')
  first = (
    (told['cpu_seconds'], told['seconds'])
    if told
    else (short.cpu_seconds, short.seconds)
  )
  by_cpu, by_wall = steps / cpu, steps / wall
  print(
    f'{name}: {by_cpu:,.0f} steps per CPU s, {by_wall:,.0f} per s', flush=True
  )
  return Speed((by_cpu, by_wall), first, told is None)


def tabulate(
  title: str, found: Mapping[str, Sequence[Speed]]
) -> rich.table.Table:
  """Makes a table of the medians of what was measured, by name."""
  table = rich.table.Table(title=title)
  table.add_column('run by')
  for column in ('steps per CPU s', 'steps per s', 'first update, CPU s',
                 'first update, s'):  # fmt: skip
    table.add_column(column, justify='right')
  for name, speeds in found.items():
    cells = [
      f'{statistics.median(one.rates[i] for one in speeds):,.0f}'
      for i in range(2)
    ]
    bound = '≤ ' if speeds[0].is_bound else ''
    cells += [
      f'{bound}{statistics.median(one.first_update[i] for one in speeds):.1f}'
      for i in range(2)
    ]
    table.add_row(name, *cells)
  return table
