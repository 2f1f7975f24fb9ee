"""Training cost of one software stack compared with another.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/stack_speed.py --pythons=<one>,<another>

Such as `.venv/bin/python` and `.venv311/bin/python`: each has Repertory, with
its own versions of the dependencies. They alternate: the first is measured
right before and after each other one, and a ratio is that of the other to the
mean of the two. See `against_peers.py` for the method: start and compilation
cancel out.
"""

import os
import statistics
from collections.abc import Mapping, Sequence

import figures
import peer_processes
import peer_runs
import peer_speed
import rich.console
import rich.table
from absl import app, flags

flags.adopt_module_key_flags(peer_speed)
_PYTHONS = flags.DEFINE_list(
  'pythons', [], 'Two or more; the first is the reference.'
)

_DQN = {'min_replay_size': 500}

CASES: Mapping[str, peer_runs.Run] = {
  run.name: run
  for run in (
    peer_runs.ours('dqn_single', 'dqn', 'catch', _DQN, (1_000, 15_000)),
    peer_runs.ours(
      'impala_single', 'impala', 'catch', {}, (4_000, 80_000), environments=8
    ),
    peer_runs.ours(
      'sac_single',
      'sac',
      'tensor:pendulum',
      {'min_replay_size': 500},
      (1_000, 6_000),
    ),
    peer_runs.ours(
      'dqn_distributed',
      'dqn',
      'catch',
      _DQN,
      (1_000, 15_000),
      topology='distributed',
    ),
  )
}


class _Measurements:
  """Measurements of a case on each stack, in rounds."""

  def __init__(
    self,
    case: peer_runs.Run,
    scale: float,
    machines: Mapping[str, peer_processes.Machine],
  ):
    self._case = case
    self._scale = scale
    self._machines = machines
    self.found: dict[str, list[peer_speed.Speed]] = {}
    self.ratios: dict[str, list[tuple[float, ...]]] = {}

  def add_round(self) -> None:
    """Measures the first, another one, the first, the next one, and so on."""
    first, *others = self._machines
    before = self._measure(first)
    for other in others:
      speed = self._measure(other)
      after = self._measure(first)
      ratios = tuple(
        rate / statistics.mean(rates)
        for rate, *rates in zip(speed.rates, before.rates, after.rates)
      )
      self.ratios.setdefault(other, []).append(ratios)
      before = after

  def _measure(self, name: str) -> peer_speed.Speed:
    speed = peer_speed.measure(
      name, self._case, self._scale, self._machines[name]
    )
    self.found.setdefault(name, []).append(speed)
    return speed


def tabulate_ratios(
  first: str, ratios: Mapping[str, Sequence[tuple[float, ...]]]
) -> rich.table.Table:
  """Returns a table of medians, with minimum and maximum."""
  table = rich.table.Table(title=f'Steps per second, beside {first}')
  table.add_column('run by')
  for column in ('per CPU s', 'per s'):
    table.add_column(column, justify='right')
  for name, values in ratios.items():
    table.add_row(name, *(figures.spread(one, 2) for one in zip(*values)))
  return table


def main(_) -> None:
  """Prints two tables for each case."""
  names = peer_speed.choose(CASES)
  pythons = _PYTHONS.value
  if len(set(pythons)) < 2:
    raise app.UsageError(
      f'--pythons must be two or more; got {", ".join(pythons) or "none"}.'
    )
  machines = {
    python: peer_processes.Machine(
      peer_speed.CORES.value,
      peer_speed.SECONDS.value,
      None,
      None,
      os.path.abspath(python),
    )
    for python in pythons
  }
  console = rich.console.Console(width=110)
  for name in names:
    print(f'{name} …', flush=True)
    measurements = _Measurements(CASES[name], peer_speed.SCALE.value, machines)
    for _ in range(peer_speed.ROUNDS.value):
      measurements.add_round()
    console.print(peer_speed.tabulate(name, measurements.found))
    console.print(tabulate_ratios(pythons[0], measurements.ratios))


if __name__ == '__main__':
  app.run(main)
