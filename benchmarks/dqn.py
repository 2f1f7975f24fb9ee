"""Speed of DQN in each topology, as ratios to the bare environment loop.

Run it with nothing else on the machine:

    .venv/bin/python benchmarks/dqn.py

Each row is measured between two runs of the bare loop, because the speed of
shared machines changes by the minute. Batch size 32, 4 samples per insert.
"""

import training_speed
from absl import app, flags

_ENVIRONMENT = flags.DEFINE_string(
  'env', 'gym:CartPole-v1', 'The environment; its actions must be discrete.'
)
_STEPS = flags.DEFINE_integer('steps', 30_000, 'Environment steps of a run.')

_SETTINGS = {'batch_size': 32, 'samples_per_insert': 4.0}

_CASES = (
  training_speed.Case('single', 'local_mt', 1, 1),
  training_speed.Case('single', 'local_mt', 1, 8),
  training_speed.Case('single', 'local_mt', 1, 32),
  training_speed.Case('distributed', 'local_mt', 1, 8),
  training_speed.Case('distributed', 'local_mt', 2, 8),
  training_speed.Case('distributed', 'local_mp', 1, 8),
  training_speed.Case('distributed', 'local_mp', 2, 8),
)


def main(_) -> None:
  """Prints a table."""
  training_speed.print_table(
    _CASES, 'dqn', _ENVIRONMENT.value, _STEPS.value, _SETTINGS
  )


if __name__ == '__main__':
  app.run(main)
