"""Training cost compared with other libraries, on identical tasks.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/against_peers.py --cleanrl=<checkout>

Each peer is installed into its own virtual environment under `build/peers/`.
CleanRL is no package, so the scripts of a checkout are run unchanged. All
processes get the same cores, one by default. If a library cannot be installed
or run, its rows are omitted, with the reason.

The cost is the difference between a short and a long run, over whole processes
with all threads and children, so that start and compilation cancel out. The
tables show environment steps per second of processor time and per second.
Repertory is measured right before and after each peer, and a ratio is that of
the mean of the two to the peer. "First update" is the time from the start of
the process, imports included, until the first update; CleanRL does not report
it, so it is the time of a whole run that ends soon after.
"""

import collections
import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import figures
import peer_cases
import peer_processes
import rich.console
import rich.table
from absl import app, flags

_CASES = flags.DEFINE_list(
  'cases', None, 'Names of the cases to run; default all.'
)
_ROUNDS = flags.DEFINE_integer('rounds', 3, 'Rounds per case.', lower_bound=1)
_SCALE = flags.DEFINE_float(
  'scale', 1.0, 'Factor of the lengths of runs.', lower_bound=0.001
)
_CORES = flags.DEFINE_integer(
  'cores', 1, 'Cores per run; 0 for all.', lower_bound=0
)
_SECONDS = flags.DEFINE_float(
  'seconds', 1_800.0, 'Time limit of a run.', lower_bound=1.0
)
_CLEANRL = flags.DEFINE_string(
  'cleanrl', None, 'Checkout of CleanRL; without one, its rows are omitted.'
)
_PYTHON = flags.DEFINE_string(
  'peer_python', None, 'Python of the peers; default `python3.11` or `python3`.'
)


class Speed(NamedTuple):
  """Result of a measurement.

  Attributes:
    rates: Environment steps per second of processor time, and per second.
    first_update: Processor time and time, in seconds, from the start of the
      process until the first update.
    is_bound: Whether `first_update` is an upper bound, from a whole run.
  """

  rates: tuple[float, float]
  first_update: tuple[float, float]
  is_bound: bool


def measure(run: peer_cases.Run, machine: peer_processes.Machine) -> Speed:
  """Measures a run, and prints the result.

  Raises:
    CannotRunError: If the run fails, exceeds the time limit or is too short.
  """
  few, many = run.steps
  many = few + round(_SCALE.value * (many - few))
  short, long = (
    peer_processes.run(run.library, run.settings, steps, machine)
    for steps in (few, many)
  )
  steps = long.report['steps'] - short.report['steps']
  cpu, wall = long.cpu_seconds - short.cpu_seconds, long.seconds - short.seconds
  if steps <= 0 or cpu <= 0 or wall <= 0:
    raise peer_processes.CannotRunError(
      f'too few steps to measure: {steps} more took {cpu:.1f} CPU s and '
      f'{wall:.1f} s more'
    )
  first_update = short.report.get('first_update')
  if first_update is None and run.library != 'cleanrl':
    raise peer_processes.CannotRunError(f'no update in {few} steps')
  first = (
    (first_update['cpu_seconds'], first_update['seconds'])
    if first_update
    else (short.cpu_seconds, short.seconds)
  )
  by_cpu, by_wall = steps / cpu, steps / wall
  print(
    f'{run.name}: {by_cpu:,.0f} steps per CPU s, {by_wall:,.0f} per s',
    flush=True,
  )
  return Speed((by_cpu, by_wall), first, first_update is None)


def tabulate(
  title: str, found: Mapping[str, Sequence[Speed]]
) -> rich.table.Table:
  """Returns a table of the medians of the measurements, by name."""
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


Measures = Mapping[str, Callable[[], Speed]]


class Rounds:
  """Measurements of a case, in rounds that alternate with a reference.

  Attributes:
    found: Speeds by name.
    rates: By names of a reference and of another, in each round: the mean of
      the reference before and after, per CPU second and per second, and the
      other's.
    left_out: Why others could not be measured, by name.
  """

  def __init__(
    self,
    references: Measures,
    others: Measures,
  ):
    self._references = references
    self._others = others
    self.found: dict[str, list[Speed]] = collections.defaultdict(list)
    self.rates: dict[tuple[str, str], list[tuple[Sequence[float], ...]]] = (
      collections.defaultdict(list)
    )
    self.left_out: dict[str, str] = {}

  def add(self) -> None:
    """Measures the references, another, the references, and so on."""
    before = self._measure_references()
    for name, measure_other in self._others.items():
      if name in self.left_out:
        continue
      try:
        speed = measure_other()
      except peer_processes.CannotRunError as error:
        self.left_out[name] = str(error)
        continue
      self.found[name].append(speed)
      after = self._measure_references()
      for one, *both in zip(self._references, before, after):
        means = [*map(statistics.mean, zip(*(r.rates for r in both)))]
        self.rates[one, name].append((means, speed.rates))
      before = after

  def _measure_references(self) -> list[Speed]:
    speeds = [measure_one() for measure_one in self._references.values()]
    for name, speed in zip(self._references, speeds):
      self.found[name].append(speed)
    return speeds

  def tabulate_ratios(self) -> rich.table.Table:
    """Returns a table of medians, with minimum and maximum."""
    table = rich.table.Table(title='Steps per second, first / second')
    for column in ('first', 'second'):
      table.add_column(column)
    for column in ('per CPU s', 'per s'):
      table.add_column(column, justify='right')
    for names, rates in self.rates.items():
      ratios = [[a / b for a, b in zip(*pair)] for pair in rates]
      table.add_row(*names, *(figures.spread(one, 2) for one in zip(*ratios)))
    return table


def print_case(title: str, references: Measures, others: Measures) -> None:
  """Measures a case and prints its tables."""
  print(f'{title} …', flush=True)
  found = Rounds(references, others)
  try:
    for _ in range(_ROUNDS.value):
      found.add()
  except peer_processes.CannotRunError as error:
    print(f'Ended early: the reference, {error}', flush=True)
  console = rich.console.Console(width=110)
  console.print(tabulate(title, found.found))
  console.print(found.tabulate_ratios())
  for name, reason in found.left_out.items():
    print(f'Omitted: {name}, {reason}', flush=True)


def main(_) -> None:
  """Prints tables for each case."""
  known = peer_cases.CASES
  names = _CASES.value or list(known)
  unknown = sorted(set(names) - set(known))
  if unknown:
    raise app.UsageError(
      f'--cases must be of {", ".join(known)}; got {", ".join(unknown)}.'
    )
  machine = peer_processes.Machine(
    _CORES.value, _SECONDS.value, _PYTHON.value, _CLEANRL.value
  )
  for name in names:
    case = known[name]
    ours, peers = (
      {run.name: functools.partial(measure, run, machine) for run in runs}
      for runs in (case.ours, case.peers)
    )
    print_case(case.title, ours, peers)


if __name__ == '__main__':
  app.run(main)
