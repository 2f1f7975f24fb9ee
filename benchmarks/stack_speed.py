"""Training cost of one software stack compared with another.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/stack_speed.py --pythons=<one>,<another>

Such as `.venv/bin/python` and `.venv311/bin/python`: each has Repertory, with
its own versions of the dependencies. They alternate: the first is measured
right before and after each other one, and a ratio is that of the mean of the
two to the other. See `against_peers.py` for the method: start and compilation
cancel out.
"""

import functools
import os
from collections.abc import Mapping

import peer_processes
import peer_runs
import peer_speed
import rich.console
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


def main(_) -> None:
  """Prints two tables for each case."""
  names = peer_speed.choose(CASES)
  pythons = _PYTHONS.value
  if len(set(pythons)) < 2:
    raise app.UsageError(
      f'--pythons must be two or more; got {", ".join(pythons) or "none"}.'
    )
  console = rich.console.Console(width=110)
  for name in names:
    print(f'{name} …', flush=True)
    measures = {
      python: functools.partial(
        peer_speed.measure,
        python,
        CASES[name],
        peer_speed.SCALE.value,
        peer_processes.Machine(
          peer_speed.CORES.value,
          peer_speed.SECONDS.value,
          None,
          None,
          os.path.abspath(python),
        ),
      )
      for python in pythons
    }
    others = {python: measures.pop(python) for python in pythons[1:]}
    found = peer_speed.Rounds(measures, others)
    for _ in range(peer_speed.ROUNDS.value):
      found.add()
    console.print(peer_speed.tabulate(name, found.found))
    console.print(found.tabulate_ratios())
    for python, reason in found.left_out.items():
      print(f'Omitted: {python}, {reason}', flush=True)


if __name__ == '__main__':
  app.run(main)
