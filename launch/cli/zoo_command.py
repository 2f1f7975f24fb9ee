"""`repertory zoo`: trains the presets by environment of all agents."""

from repertory.launch import sweeps
from repertory.launch.cli import command, sweep_command
from repertory.launch.cli import flags as flag_tables
from repertory.launch.experiments import experiment as experiment_lib

_FLAGS = flag_tables.table(
  {
    'directory': 'Directory of the zoo, with a directory for each run, the '
    'page of results and the policies; required. An existing zoo is resumed.',
    'agent': 'Patterns of agents to train, such as ppo,dqn.',
    'env': 'Patterns of environments to train on, such as gym:*,minatar:*.',
    'seeds': 'Number of seeds of each agent and environment, from 0.',
    'parallel': 'Number of concurrent runs; default: one per core.',
    'fresh': 'Start over; the old directory is moved aside.',
  },
  directory=str,
  agent=['*'],
  env=['*'],
  seeds=5,
  parallel=int,
  fresh=False,
)


@command.register(
  'zoo',
  3,
  '--directory=DIRECTORY [--agent=PATTERN,...] [--env=PATTERN,...]',
  'Trains agents with their presets by environment; writes a page of results, '
  'and the best policies.',
  _FLAGS,
)
def _zoo(values, settings, positional) -> int:
  del settings, positional
  sweep_command.check_own(values)
  if not values.fresh:
    sweeps.zoo.check_directory(values.directory)
  chosen = sweeps.zoo.cells(values.agent, values.env)
  plan = sweeps.zoo.ZooPlan(chosen, values.seeds, sweep_command.read_settings)
  pool, interrupted = sweep_command.run_plan(
    plan,
    values,
    cores_per_run=1,
    stop_seconds=experiment_lib.Experiment.timeout_seconds,
  )
  return sweep_command.report_end(pool, interrupted, with_table=False)
