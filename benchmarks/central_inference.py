"""Environment steps per second with central inference.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/central_inference.py

Actors are processes that step cheap vectorized environments. For each row of
the table the same actors use an inference server, and then a local network
each, all within a minute. Nothing is learned.

Shares are fractions of an actor's time: its environments, and the medians of
the round trip's transport, wait for a batch, and network.

A bare loop over one CartPole of gymnasium, before and after, measures the speed
of the machine: compare machines and hours by 'central / bare'.
"""

import functools
import time

import acting_runs
import gymnasium
import rich.console
import rich.table
from absl import app, flags

_NETWORKS = flags.DEFINE_list('networks', 'mlp,lstm', 'mlp, lstm, images.')
_CASES = flags.DEFINE_list(
  'cases', '1x1,2x16,2x64,4x16,8x16', 'Actors x environments per actor.'
)
_SECONDS = flags.DEFINE_float('seconds', 4.0, 'Duration per measurement.')


def measure_gymnasium_loop(seconds: float = 1.0) -> float:
  """Returns the steps per second of a single CartPole."""
  environment = gymnasium.make('CartPole-v1')
  environment.reset(seed=0)
  steps, start = 0, time.perf_counter()
  while (elapsed := time.perf_counter() - start) < seconds:
    for action in range(2):
      *_, terminated, truncated, _ = environment.step(action)
      if terminated or truncated:
        environment.reset()
      steps += 1
  return steps / elapsed


def measure(network: str, actors: int, environments: int) -> list[str]:
  """Returns a row of the table."""
  bare_before = measure_gymnasium_loop()
  case = network, actors, environments
  run = functools.partial(acting_runs.run_actors, *case, seconds=_SECONDS.value)
  with acting_runs.serve(*case) as service:
    acting = run(address=service.address)
    row = service.report()
  local = run(address='')
  bare = (bare_before + measure_gymnasium_loop()) / 2
  rate = acting['steps_per_second']
  return [
    network,
    f'{actors} × {environments}',
    f'{rate:,.0f}',
    f'{local["steps_per_second"]:,.0f}',
    f'{rate / local["steps_per_second"]:.2f}',
    _shares(acting, row),
    f'{row["rows_per_batch"]:.0f}',
    f'{acting["memory_mb"]:.0f} / {local["memory_mb"]:.0f}',
    f'{bare:,.0f}',
    f'{rate / bare:.2f}',
  ]


def _shares(actors: dict[str, float], server_row: dict[str, float]) -> str:
  """Returns the shares of environments, transport, waiting and network."""
  parts = [
    server_row[f'{name}_ms_p50'] for name in ('transport', 'wait', 'run')
  ]
  environments = actors['environment_share']
  scale = (1 - environments) / sum(parts)
  shares = [environments, *(scale * part for part in parts)]
  return ' + '.join(f'{share:.0%}' for share in shares)


def main(_) -> None:
  """Prints a table."""
  table = rich.table.Table(title='Environment steps per second')
  for column in (
    'network',
    'actors × environments',
    'central',
    'local',
    'central / local',
    'environment + transport + wait + network',
    'rows',
    'MB an actor, central / local',
    'bare loop',
    'central / bare',
  ):
    table.add_column(column, justify='right')
  console = rich.console.Console(width=150)
  for network in _NETWORKS.value:
    for case in _CASES.value:
      row = measure(network, *map(int, case.split('x')))
      table.add_row(*row)
      console.print(' | '.join(row))
  console.print(table)


if __name__ == '__main__':
  app.run(main)
