"""Training cost compared with other libraries, on identical tasks.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/against_peers.py --checkouts=<folder> \
        --newest_python=.venv312/bin/python

Each peer is installed into its own virtual environment under `build/peers/`.
CleanRL and PureJaxRL are no packages, so the scripts of a checkout are run
unchanged. All processes get the same cores, one by default. If a library cannot
be installed or run, its rows are omitted, with the reason.

The speed is the difference between a short and a long run, over whole processes
with all threads and children, so that start and compilation cancel out, in
environment steps per second of processor time and per second. Cases named
`start_` measure the first update instead, from the start of the process,
imports included: processor time, time and memory. Repertory is measured right
before and after each peer, and a ratio is that of the mean of the two to the
peer.
"""

import collections
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

import figures
import peer_cases
import peer_processes
import rich.console
import rich.table
from absl import app, flags

flags.adopt_module_key_flags(peer_processes)
_ROUNDS = flags.DEFINE_integer('rounds', 3, 'Rounds per case.', lower_bound=1)
_SECONDS = flags.DEFINE_float(
  'seconds', 1_800.0, 'Time limit of a run.', lower_bound=1.0
)
_NEWEST = flags.DEFINE_string(
  'newest_python',
  None,
  'Python with Repertory and the newest TensorFlow; without one, its rows are '
  'omitted.',
)

Costs = Mapping[str, float]

_SPEED: Sequence[str] = 'steps per CPU s', 'steps per s'
_START: Sequence[str] = 'CPU s', 's', 'MiB'
_DIGITS = {**dict.fromkeys((*_SPEED, 'MiB'), 0), 'CPU s': 1, 's': 1}


def measure(run: peer_cases.Run, machine: peer_processes.Machine) -> Costs:
  """Measures a run, and prints the result.

  Returns:
    Environment steps per second of processor time and per second. With a short
    run only, those seconds from the start of the process until the first
    update, and the memory (PSS) then.

  Raises:
    CannotRunError: If the run fails, exceeds the time limit or is too short.
  """
  few, *rest = run.steps
  many = [
    few + round(peer_processes.SCALE.value * (steps - few)) for steps in rest
  ]
  short, *long = (
    peer_processes.run(run.library, run.settings, steps, machine)
    for steps in (few, *many)
  )
  if not long and 'first_update' not in short.report:
    raise peer_processes.CannotRunError(f'no update in {few} steps')
  if not long:
    found = dict(zip(_START, short.report['first_update']))
  else:
    steps = long[0].report['steps'] - short.report['steps']
    cpu = long[0].cpu_seconds - short.cpu_seconds
    wall = long[0].seconds - short.seconds
    if min(steps, cpu, wall) <= 0:
      raise peer_processes.CannotRunError(
        f'too few steps: {steps} more took {cpu:.1f} CPU s, {wall:.1f} s more'
      )
    found = dict(zip(_SPEED, (steps / cpu, steps / wall)))
  cells = ', '.join(f'{value:,.1f} {name}' for name, value in found.items())
  print(f'{run.name}: {cells}', flush=True)
  return found


def compare(case: peer_cases.Case, machine: peer_processes.Machine) -> None:
  """Measures ours, a peer, ours and so on, in rounds, and prints tables."""
  print(f'{case.title} …', flush=True)
  found, ratios = (collections.defaultdict(list) for _ in range(2))
  left_out: dict[str, str] = {}

  def measure_all(runs: Sequence[peer_cases.Run]) -> list[Costs]:
    costs = [measure(run, machine) for run in runs]
    for run, one in zip(runs, costs):
      found[run.name,].append(one)
    return costs

  def measure_round() -> None:
    before = measure_all(case.ours)
    for run in case.peers:
      if run.name in left_out:
        continue
      try:
        [costs] = measure_all([run])
      except peer_processes.CannotRunError as error:
        left_out[run.name] = str(error)
        continue
      after = measure_all(case.ours)
      for one, a, b in zip(case.ours, before, after):
        ratios[one.name, run.name].append(
          {key: (a[key] + b[key]) / 2 / costs[key] for key in costs}
        )
      before = after

  try:
    for _ in range(_ROUNDS.value):
      measure_round()
  except peer_processes.CannotRunError as error:
    print(f'Ended early: the reference, {error}', flush=True)
  print_table(case.title, ['run by'], found, _DIGITS)
  print_table('First / second', ['first', 'second'], ratios)
  for name, reason in left_out.items():
    print(f'Omitted: {name}, {reason}', flush=True)


def print_table(
  title: str,
  headers: Sequence[str],
  rows: Mapping[tuple[str, ...], Sequence[Costs]],
  digits: Mapping[str, int] | None = None,
) -> None:
  """Prints medians, with minimum and maximum, if there are any.

  Args:
    title: Title of the table.
    headers: Headers of the names of rows.
    rows: Values of each round, by names of the row.
    digits: Number of decimal places by column; None for 2.
  """
  if not rows:
    return
  table = rich.table.Table(*headers, title=title)
  for names, values in rows.items():
    if not table.rows:
      for column in values[0]:
        table.add_column(column, justify='right')
    cells = (
      figures.spread([one[key] for one in values], (digits or {}).get(key, 2))
      for key in values[0]
    )
    table.add_row(*names, *cells)
  rich.console.Console(width=120).print(table)


def main(arguments: Sequence[str]) -> None:
  """Prints the processor, versions, and tables for each case."""
  known = peer_cases.CASES
  names = peer_processes.choose_cases(arguments, list(known), list(known))
  machine = peer_processes.make_machine(_SECONDS.value, _NEWEST.value)
  signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ends a run, too.
  cases = [known[name] for name in names]
  print(f'{os.cpu_count()} cores of {figures.processor()}', flush=True)
  runs = (run for case in cases for run in (*case.ours, *case.peers))
  for library in dict.fromkeys(run.library for run in runs):
    with contextlib.suppress(peer_processes.CannotRunError):
      print(library, peer_processes.versions(library, machine), flush=True)
  for case in cases:
    compare(case, machine)


if __name__ == '__main__':
  app.run(main)
