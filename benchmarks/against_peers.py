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

import functools

import peer_cases
import peer_processes
import peer_runs
import peer_speed
import rich.console
from absl import app, flags

flags.adopt_module_key_flags(peer_speed)
_CLEANRL = flags.DEFINE_string(
  'cleanrl', None, 'Checkout of CleanRL; without one, its rows are omitted.'
)
_PYTHON = flags.DEFINE_string(
  'peer_python', None, 'Python of the peers; default `python3.11` or `python3`.'
)


def print_case(
  case: peer_runs.Case,
  rounds: int,
  scale: float,
  machine: peer_processes.Machine,
) -> None:
  """Measures a case and prints its tables."""
  print(f'{case.title} …', flush=True)

  def measure_all(runs):
    return {
      run.name: functools.partial(
        peer_speed.measure, run.name, run, scale, machine
      )
      for run in runs
    }

  found = peer_speed.Rounds(measure_all(case.ours), measure_all(case.peers))
  try:
    for _ in range(rounds):
      found.add()
  except peer_processes.CannotRunError as error:
    print(f'Ended early: ours, {error}', flush=True)
  console = rich.console.Console(width=110)
  console.print(peer_speed.tabulate(case.title, found.found))
  console.print(found.tabulate_ratios())
  for name, reason in found.left_out.items():
    print(f'Omitted: {name}, {reason}', flush=True)


def main(_) -> None:
  """Prints tables for each case."""
  names = peer_speed.choose(peer_cases.CASES)
  machine = peer_processes.Machine(
    peer_speed.CORES.value,
    peer_speed.SECONDS.value,
    _PYTHON.value,
    _CLEANRL.value,
  )
  for name in names:
    print_case(
      peer_cases.CASES[name],
      peer_speed.ROUNDS.value,
      peer_speed.SCALE.value,
      machine,
    )


if __name__ == '__main__':
  app.run(main)
