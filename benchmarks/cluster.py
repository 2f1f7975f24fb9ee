"""Cost of distribution: Ray versus local processes.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/cluster.py

DQN on catch, `distributed`, by number of actors; on a Ray cluster of this host
alone, and by Launchpad in processes, alternating in rounds. The table shows
environment steps per second, and per second of processor time of all processes
of the run; both exclude start, end and the first fifth of the steps. A ratio of
1 means that Ray has no cost.
"""

import contextlib
import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
import time

import figures
import psutil
import rich.console
import rich.table
from absl import app, flags

_ACTORS = flags.DEFINE_list('actors', '2,4,8', 'Numbers of actors.')
_STEPS = flags.DEFINE_integer('steps', 20_000, 'Environment steps of a run.')
_ROUNDS = flags.DEFINE_integer('rounds', 3, 'Rounds per case.')

_LAUNCHERS = ('ray', 'local_mp')
_RUN_SECONDS = 600
_LOOK_SECONDS = 0.1
_MIN_ROWS = 4  # One is written about every second.


@dataclasses.dataclass(frozen=True)
class Rates:
  """Training speed of a run.

  Attributes:
    per_second: Environment steps per second.
    per_cpu_second: Environment steps per second of processor time.
  """

  per_second: float
  per_cpu_second: float


def train(launcher: str, num_actors: int, steps: int) -> Rates:
  """Runs a training once.

  Raises:
    RuntimeError: If the run failed, or was too short to be measured.
  """
  with tempfile.TemporaryDirectory() as directory:
    command = [
      os.path.join(os.path.dirname(sys.executable), 'repertory'),
      'train',
      '--agent=dqn',
      '--env=catch',
      '--topology=distributed',
      f'--lp_launch_type={launcher}',
      f'--num_actors={num_actors}',
      f'--steps={steps}',
      f'--directory={directory}/run',
      '--config.samples_per_insert=4',
      '--evaluation_episodes=0',
      '--nocheckpoint_replay',
    ]
    with open(os.path.join(directory, 'printed'), 'w+') as printed:
      run = subprocess.Popen(command, stdout=printed, stderr=printed)
      try:
        seen = _watch(run, f'{directory}/run')
      finally:
        run.terminate()
        run.wait()
      if run.returncode:
        printed.seek(0)
        raise RuntimeError(f'The run failed: {printed.read()}')
  # The processor time of actors that have ended is not counted.
  seen = [one for one in seen if steps / 5 < one['steps'] < steps]
  if len(seen) < _MIN_ROWS:
    raise RuntimeError(f'--steps must be larger, got {steps}: too short a run.')
  first, last = seen[0], seen[-1]
  num_steps = last['steps'] - first['steps']
  return Rates(
    num_steps / (last['elapsed_seconds'] - first['elapsed_seconds']),
    num_steps / (last['cpu_seconds'] - first['cpu_seconds']),
  )


def _watch(run: subprocess.Popen, directory: str) -> list[dict[str, float]]:
  """Waits for the end of a run.

  Returns:
    The rows of its replay log, each with the processor time of all processes at
    the time it was written.
  """
  seen, deadline = [], time.monotonic() + _RUN_SECONDS
  while run.poll() is None:
    if time.monotonic() > deadline:
      raise RuntimeError(f'Waited {_RUN_SECONDS} seconds for a run to end.')
    time.sleep(_LOOK_SECONDS)
    rows = figures.read_rows(directory)
    if len(rows) > len(seen):
      cpu_seconds = _processor_seconds(run.pid)
      seen += [{**row, 'cpu_seconds': cpu_seconds} for row in rows[len(seen) :]]
  return seen


def _processor_seconds(pid: int) -> float:
  """Returns the processor time of a process and all its descendants."""
  total = 0.0
  with contextlib.suppress(psutil.NoSuchProcess):
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
      with contextlib.suppress(psutil.NoSuchProcess):
        times = one.cpu_times()
        total += times.user + times.system
  return total


def main(_) -> None:
  """Compares launchers, by number of actors."""
  table = rich.table.Table(title='DQN on catch, distributed')
  table.add_column('actors')
  for column in (
    *(f'{launcher}, steps/s' for launcher in _LAUNCHERS),
    'ratio',
    *(f'{launcher}, steps per CPU s' for launcher in _LAUNCHERS),
    'ratio',
  ):
    table.add_column(column, justify='right')
  for num_actors in map(int, _ACTORS.value):
    found = {launcher: [] for launcher in _LAUNCHERS}
    for round_index in range(_ROUNDS.value):
      # The order alternates, because a machine may get slower over time.
      for launcher in _LAUNCHERS[:: -1 if round_index % 2 else 1]:
        rates = train(launcher, num_actors, _STEPS.value)
        print(f'{num_actors} actors, {launcher}: {rates}', flush=True)
        found[launcher].append(rates)
    cells = []
    for field in ('per_second', 'per_cpu_second'):
      ray, local = (
        [getattr(rates, field) for rates in found[launcher]]
        for launcher in _LAUNCHERS
      )
      cells += [f'{statistics.median(rates):,.0f}' for rates in (ray, local)]
      cells.append(
        figures.spread([one / other for one, other in zip(ray, local)], 2)
      )
    table.add_row(str(num_actors), *cells)
  rich.console.Console(width=130).print(table)


if __name__ == '__main__':
  app.run(main)
