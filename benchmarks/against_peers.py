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

With `--solve`, the cost of solving a task: see `peer_solving.py`.
"""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import figures
import peer_cases
import peer_processes
import peer_runs
import peer_solving
import peer_speed
import rich.console
import rich.table
from absl import app, flags

flags.adopt_module_key_flags(peer_speed)
_CLEANRL = flags.DEFINE_string(
  'cleanrl', None, 'Checkout of CleanRL; without one, its rows are omitted.'
)
_PYTHON = flags.DEFINE_string(
  'peer_python', None, 'Python of the peers; default `python3.11` or `python3`.'
)
_SOLVE = flags.DEFINE_bool('solve', False, 'Measure the time to solve tasks.')
_SEEDS = flags.DEFINE_list('seeds', ['1', '2', '3', '4', '5'], 'For --solve.')


class Ratios(NamedTuple):
  """Repertory's rates relative to a peer's, in each round.

  Attributes:
    ours: Name of Repertory's run.
    peer: Name of the peer's run.
    mark: The ratio to reach.
    values: Ratios per second of processor time and per second.
  """

  ours: str
  peer: str
  mark: float
  values: list[tuple[float, float]]


class _Measurements:
  """Measurements of a case, in rounds."""

  def __init__(
    self, case: peer_runs.Case, scale: float, machine: peer_processes.Machine
  ):
    self._case = case
    self._scale = scale
    self._machine = machine
    self.found: dict[str, list[peer_speed.Speed]] = {}
    self.left_out: dict[str, str] = {}
    self.ratios = {
      (ours.name, peer.name): Ratios(ours.name, peer.name, peer.mark, [])
      for peer in case.peers
      for ours in case.ours
    }

  def add_round(self) -> None:
    """Measures ours, a peer, ours, the next peer, and so on."""
    before = self._measure_ours()
    for peer in self._case.peers:
      if peer.name in self.left_out:
        continue
      try:
        speed = self._measure(peer)
      except peer_processes.CannotRunError as error:
        self.left_out[peer.name] = str(error)
        continue
      after = self._measure_ours()
      for ours, one, other in zip(self._case.ours, before, after):
        cpu, wall = (
          statistics.mean(rates) / rate
          for *rates, rate in zip(one.rates, other.rates, speed.rates)
        )
        self.ratios[ours.name, peer.name].values.append((cpu, wall))
      before = after

  def _measure_ours(self) -> list[peer_speed.Speed]:
    return [self._measure(run) for run in self._case.ours]

  def _measure(self, run: peer_runs.Run) -> peer_speed.Speed:
    speed = peer_speed.measure(run.name, run, self._scale, self._machine)
    self.found.setdefault(run.name, []).append(speed)
    return speed


def _tabulate_ratios(ratios: Sequence[Ratios]) -> rich.table.Table:
  """Returns a table of medians, with minimum and maximum."""
  table = rich.table.Table(title='Steps per second, ours / theirs')
  for column in ('ours', 'theirs'):
    table.add_column(column)
  for column in ('per CPU s', 'per s', 'mark', 'reached'):
    table.add_column(column, justify='right')
  for one in ratios:
    if not one.values:
      continue
    cpu, wall = zip(*one.values)
    table.add_row(
      one.ours,
      one.peer,
      figures.spread(cpu, 2),
      figures.spread(wall, 2),
      f'{one.mark:g}',
      'yes' if statistics.median(cpu) >= one.mark else 'no',
    )
  return table


def print_case(
  case: peer_runs.Case,
  rounds: int,
  scale: float,
  machine: peer_processes.Machine,
) -> None:
  """Measures a case and prints its tables."""
  print(f'{case.title} …', flush=True)
  measurements = _Measurements(case, scale, machine)
  try:
    for _ in range(rounds):
      measurements.add_round()
  except peer_processes.CannotRunError as error:
    print(f'Ended early: ours, {error}', flush=True)
  console = rich.console.Console(width=110)
  console.print(peer_speed.tabulate(case.title, measurements.found))
  console.print(_tabulate_ratios(list(measurements.ratios.values())))
  for name, reason in measurements.left_out.items():
    print(f'Omitted: {name}, {reason}', flush=True)


def main(_) -> None:
  """Prints tables for each case."""
  known = peer_solving.TASKS if _SOLVE.value else peer_cases.CASES
  names = peer_speed.choose(known)
  machine = peer_processes.Machine(
    peer_speed.CORES.value,
    peer_speed.SECONDS.value,
    _PYTHON.value,
    _CLEANRL.value,
  )
  for name in names:
    if _SOLVE.value:
      seeds = [int(seed) for seed in _SEEDS.value]
      peer_solving.print_task(peer_solving.TASKS[name], seeds, machine)
    else:
      print_case(
        peer_cases.CASES[name],
        peer_speed.ROUNDS.value,
        peer_speed.SCALE.value,
        machine,
      )


if __name__ == '__main__':
  app.run(main)
