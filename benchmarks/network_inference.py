"""Central inference with actors on another host, by network delay.

Part of `cluster.py`, which runs it in its own network namespace.

An inference server and, on a second host, two actors. Each of many short rounds
measures all delays, with and without double buffering. Other load can only slow
them down, so the fastest of five consecutive rounds counts, for each; ratios
are of those, with minimum and maximum.
*Same host* is the same over TCP, without a network between.

The vectorized environments cost next to nothing. With `--step_ms` a step of all
environments of an actor takes longer: the actor sleeps, as if the other host
had spare processors.
"""

import collections
import contextlib
import dataclasses
import itertools
import json
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import acting_runs
import delayed_network
import figures
import rich.console
import rich.table
from absl import app, flags

from repertory.components.inference import addresses
from repertory.components.runtime import network_interfaces

_ROUNDS = flags.DEFINE_integer('rounds', 25, 'Rounds per case.')
_SECONDS = flags.DEFINE_float('seconds', 0.5, 'Duration per measurement.')
_ENVIRONMENTS = flags.DEFINE_list(
  'environments', '16,64', 'Environments per actor.'
)
_DELAYS = flags.DEFINE_list(
  'delays_ms', '0,0.2,1', 'Delays of a packet, each way.'
)
_STEP_MS = flags.DEFINE_list(
  'step_ms', '0,1', 'Time of a step of all environments of an actor.'
)
_HERE = os.path.dirname(os.path.abspath(__file__))
_ACTORS = 2
_NETWORK = 'mlp'
_CONNECTIONS = (1, 2)
_OF_ROUNDS = 5  # The fastest counts.
_SAME_HOST = -1.0  # Stands for no network, in place of a delay.

Rates = Mapping[tuple[float, int], Sequence[float]]


@dataclasses.dataclass(frozen=True)
class Case:
  """Setting that is measured at all delays.

  Attributes:
    environments: Number of environments per actor.
    step_ms: Additional time of a step of all environments.
  """

  environments: int
  step_ms: float


@contextlib.contextmanager
def _actors(case: Case, prefix: Sequence[str]) -> Iterator[list[Any]]:
  """Starts actors, and the servers of their policies.

  Args:
    prefix: Command prefix that runs a command on the actors' host.

  Yields:
    The processes of the actors.
  """
  here = network_interfaces.of_address(delayed_network.HERE)
  with contextlib.ExitStack() as stack:
    served = {}
    for num_connections in _CONNECTIONS:
      serving = acting_runs.serve(
        _NETWORK,
        _ACTORS,
        case.environments,
        address=addresses.make_address(here),
        num_connections=num_connections,
      )
      served[num_connections] = stack.enter_context(serving)[0].address
    actors = []
    for index in range(_ACTORS):
      first = index * case.environments
      settings = {
        'environment': 'vector',
        'environment_ids': list(range(first, first + case.environments)),
        'addresses': served,
        'step_seconds': case.step_ms / 1e3,
      }
      worker = os.path.join(_HERE, 'network_worker.py')
      command = [*prefix, sys.executable, worker, json.dumps(settings)]
      actors.append(acting_runs.start(command))
      stack.callback(actors[-1].wait)
      stack.callback(actors[-1].kill)
    for actor in actors:
      if actor.stdout.readline() != 'ready\n':
        raise RuntimeError('An actor did not start.')
    yield actors


def _run(actors: Sequence[Any], num_connections: int) -> float:
  """Runs actors for some time; returns their total steps per second."""
  for actor in actors:
    actor.stdin.write(f'[{num_connections}, {_SECONDS.value}]\n')
    actor.stdin.flush()
  return sum(float(actor.stdout.readline()) for actor in actors)


def measure(case: Case, network: delayed_network.Network) -> Rates:
  """Returns the fastest steps per second, by delay and number of lanes."""
  delays = [_SAME_HOST, *map(float, _DELAYS.value)]
  found = collections.defaultdict(list)
  network.delay(0.0)
  with (
    _actors(case, ()) as neighbors,
    _actors(case, network.prefix) as others,
  ):
    for _ in range(_ROUNDS.value):
      for delay, num_connections in itertools.product(delays, _CONNECTIONS):
        actors = neighbors if delay == _SAME_HOST else others
        network.delay(max(delay, 0.0) / 1e3)
        found[delay, num_connections].append(_run(actors, num_connections))
  return {key: _fastest(rates) for key, rates in found.items()}


def _fastest(rates: Sequence[float]) -> list[float]:
  return [
    max(rates[i : i + _OF_ROUNDS]) for i in range(0, len(rates), _OF_ROUNDS)
  ]


def print_case(case: Case, found: Rates) -> None:
  """Prints a table."""
  table = rich.table.Table(
    title=f'{_ACTORS} × {case.environments} environments, whose step takes '
    f'{case.step_ms:g} ms more'
  )
  table.add_column('network')
  for column in (
    'steps/s',
    '… / no delay',
    'double buffering, steps/s',
    '… / without it',
    'regained of the loss',
  ):
    table.add_column(column, justify='right')
  no_delay = found[0.0, 1] if (0.0, 1) in found else found[_SAME_HOST, 1]
  for delay in dict.fromkeys(delay for delay, _ in found):
    plain, double = found[delay, 1], found[delay, 2]
    name = f'{delay:g} ms each way'
    regained = '–'
    if delay == _SAME_HOST:
      name = 'same host'
    elif delay > 0:
      regained = figures.spread(
        [(d - p) / (n - p) for p, d, n in zip(plain, double, no_delay)], 2
      )
    table.add_row(
      name,
      f'{statistics.median(plain):,.0f}',
      figures.spread([p / n for p, n in zip(plain, no_delay)], 2),
      f'{statistics.median(double):,.0f}',
      figures.spread([d / p for p, d in zip(plain, double)], 2),
      regained,
    )
  rich.console.Console(width=130).print(table)


def main(_) -> None:
  """Prints a table for each case."""
  with delayed_network.connected() as network:
    delays = [float(delay) / 1e3 for delay in _DELAYS.value]
    for line in delayed_network.measure_precision(network, delays):
      print(line)
    cases = itertools.product(
      map(int, _ENVIRONMENTS.value), map(float, _STEP_MS.value)
    )
    for environments, step_ms in cases:
      case = Case(environments, step_ms)
      print_case(case, measure(case, network))


if __name__ == '__main__':
  app.run(main)
