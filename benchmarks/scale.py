"""Bottlenecks of a run with many actors.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/scale.py
    .venv/bin/python benchmarks/scale.py --env=atari:Pong --preset=atari

Coordinator, replay server and learner are those of a run of DQN, each in its
own process (`scale_nodes.py`). Actors are simulated, so that two cores can run
hundreds (`scale_actors.py`): they only generate an actor's calls, many actors
to a process. The actors of a process share its connections.

The first table shows the processor time of each call in the called process,
less its processor time without actors. The learner makes no update meanwhile,
so the served variables are cached. A second table extrapolates to more actors,
assuming that the learner is fast enough. Another run, in which the learner
learns from a few actors, measures its speed.
"""

import statistics
from collections.abc import Mapping, Sequence

import repertory  # noqa: F401  Before TensorFlow: see its first lines.

# isort: split
import figures
import rich.console
import rich.table
import scale_runs

# Before absl's `app.run`, see `training_speed.py`.
import tensorflow as tf  # noqa: F401
from absl import app, flags

from repertory.launch.coordination import reports

_ENVIRONMENT = flags.DEFINE_string('env', 'catch', 'The environment.')
_PRESET = flags.DEFINE_string('preset', None, "Preset of DQN's settings.")
_ACTORS = flags.DEFINE_list('actors', '16,64,128,256', 'Numbers of actors.')
_STEPS = flags.DEFINE_float('steps_per_second', 4.0, 'Steps per actor.')
_SECONDS = flags.DEFINE_float('seconds', 10.0, 'Duration per measurement.')
_ROUNDS = flags.DEFINE_integer('rounds', 3, 'Rounds per case.')
_IN_A_PROCESS = flags.DEFINE_integer('in_a_process', 32, 'Actors per process.')
_PREDICTED = flags.DEFINE_list(
  'predicted', '10,100,1000', 'Numbers of actors to extrapolate to.'
)
_PREDICTED_STEPS = flags.DEFINE_float(
  'predicted_steps_per_second', 100.0, 'Steps per extrapolated actor.'
)

# Enough items that no call blocks on the rate limiter.
_MANY = 100_000
_LEARNING_ACTORS = 4

_COORDINATOR, _REPLAY, _LEARNER = (
  scale_runs.COORDINATOR,
  scale_runs.REPLAY,
  scale_runs.LEARNER,
)
# The measured call of each node.
_ASKED = {_COORDINATOR: 'calls', _REPLAY: 'inserts', _LEARNER: 'fetches'}

Row = Mapping[str, float]


def microseconds(row: Row, node: str) -> float:
  """Returns the processor time of a node per call."""
  return 1e6 * row[f'busy/{node}'] / max(row[_ASKED[node]], 1e-9)


def measure(num_actors: int, *, learns: bool = False) -> Row:
  """Measures `num_actors` actors, with or without learning."""
  size = {'max_replay_size': _MANY}
  return scale_runs.measure(
    scale_runs.Load(
      environment=_ENVIRONMENT.value,
      preset=_PRESET.value,
      config={**size, 'min_replay_size': 500 if learns else _MANY},
      num_actors=num_actors,
      in_a_process=_IN_A_PROCESS.value,
      steps_per_second=float('inf') if learns else _STEPS.value,
      fetches=not learns,
      seconds=_SECONDS.value,
    )
  )


def print_measured(found: Mapping[int, Sequence[Row]]) -> None:
  """Prints the measurements, by number of actors."""
  table = rich.table.Table(
    title=f'{_ENVIRONMENT.value}: {_STEPS.value:g} steps per second of each '
    'actor'
  )
  columns = {
    'calls/s of the coordinator': ('calls', 0),
    'a report, ms': ('report_ms', 2),
    '99 % within': ('report_ms_p99', 1),
    'inserts/s': ('inserts', 0),
    'fetches/s': ('fetches', 0),
    "actors' cores": ('busy/actors', 2),
    "coordinator's threads": (f'threads/{_COORDINATOR}', 0),
    '… files': (f'files/{_COORDINATOR}', 0),
  }
  for column in (
    'actors',
    *columns,
    'CPU µs a call',
    '… an insert',
    '… a fetch',
  ):
    table.add_column(column, justify='right')
  for num_actors, rows in found.items():
    table.add_row(
      str(num_actors),
      *(
        f'{statistics.median(row[key] for row in rows):,.{digits}f}'
        for key, digits in columns.values()
      ),
      *(
        figures.spread([microseconds(row, node) for row in rows], 0)
        for node in _ASKED
      ),
    )
  rich.console.Console(width=180).print(table)


def _cost_of(found: Mapping[int, Sequence[Row]], node: str) -> float:
  """Returns the microseconds per call, at the largest number of actors."""
  return statistics.median(microseconds(row, node) for row in found[max(found)])


def print_prediction(
  found: Mapping[int, Sequence[Row]], learning: Sequence[Row]
) -> None:
  """Prints the extrapolated load of more actors."""
  any_row = learning[0]
  steps = _PREDICTED_STEPS.value
  fetches = steps / any_row['update_period']
  fetched = statistics.median(
    row['fetched_bytes'] for rows in found.values() for row in rows
  )
  table = rich.table.Table(
    title=f'{_ENVIRONMENT.value}: {steps:g} steps per second of each actor, '
    f'variables after every {any_row["update_period"]:g}'
  )
  for column in (
    'actors',
    'coordinator, cores',
    'replay, cores',
    "learner's variables, cores",
    '… MB/s',
    'items, MB/s',
    'environment steps/s',
  ):
    table.add_column(column, justify='right')
  for num_actors in map(int, _PREDICTED.value):
    # A step budget of up to 1000 steps takes two calls.
    calls = 1 / reports.PERIOD_SECONDS + 2 * steps / 1000
    each = {_COORDINATOR: calls, _REPLAY: steps, _LEARNER: fetches}
    table.add_row(
      f'{num_actors:,}',
      *(
        f'{num_actors * number * _cost_of(found, node) / 1e6:.2f}'
        for node, number in each.items()
      ),
      f'{num_actors * fetches * fetched / 1e6:,.1f}',
      f'{num_actors * steps * any_row["step_bytes"] / 1e6:,.1f}',
      f'{num_actors * steps:,.0f}',
    )
  rich.console.Console(width=130).print(table)
  taken = [
    row['updates'] * row['samples_per_update'] / row['samples_per_insert']
    for row in learning
  ]
  print(
    f'This learner makes {figures.spread([r["updates"] for r in learning], 0)}'
    f' updates per second, enough for {figures.spread(taken, 0)} '
    'environment steps per second of all actors together; meanwhile a '
    'step costs the replay server '
    + figures.spread([microseconds(row, _REPLAY) for row in learning], 0)
    + f' µs, its {any_row["samples_per_insert"]:g} samples included.'
  )


def main(_) -> None:
  """Prints tables."""
  found = {int(actors): [] for actors in _ACTORS.value}
  learning = []
  for _ in range(_ROUNDS.value):
    for num_actors, rows in found.items():
      rows.append(measure(num_actors))
      print(num_actors, rows[-1], flush=True)
    learning.append(measure(_LEARNING_ACTORS, learns=True))
  print_measured(found)
  print_prediction(found, learning)


if __name__ == '__main__':
  app.run(main)
