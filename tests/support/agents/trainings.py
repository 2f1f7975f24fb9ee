"""Trains agents in child processes, for learning tests."""

import csv
import pathlib

import pytest

from support.system import program

SEEDS = (1, 2, 3)
TOPOLOGIES = (
  ('single',),
  ('distributed', 'local_mt'),
  ('distributed', 'local_mp'),
)
over_seeds = pytest.mark.parametrize('seed', SEEDS)


def train(
  directory,
  agent,
  environment,
  *settings,
  steps,
  topology=TOPOLOGIES[0],
  seed,
  environments: int | None = 1,
  episodes=100,
  evaluations=1,
  deadline_seconds: float = 900,
):
  """Trains an agent in a child process; returns its last evaluation.

  `environments` is None for the agent's default, of one actor.
  """
  name, *launch_type = topology
  actors = 1 if name in ('single', 'anakin') or environments == 1 else 2
  per_actor = []
  if environments is not None:
    per_actor = [f'--environments_per_actor={environments // actors}']
  ended = program.repertory(
    'train',
    f'--agent={agent}',
    f'--env={environment}',
    '--preset=none',  # Unless the settings have one.
    *settings,
    f'--steps={steps}',
    f'--topology={name}',
    *(f'--lp_launch_type={value}' for value in launch_type),
    f'--num_actors={actors}',
    *per_actor,
    f'--seed={seed}',
    f'--evaluation_episodes={episodes}',
    f'--evaluation_period={steps // evaluations}',
    '--directory=run',
    cwd=directory,
  ).wait(deadline_seconds)
  assert ended.code == 0, ended.output
  assert ended.left == []
  return evaluations_of(directory)[-1]


def evaluations_of(directory):
  """Returns the mean returns of the evaluations of `train`, in order."""
  path = pathlib.Path(directory, 'run', 'logs', 'evaluator.csv')
  with path.open() as file:
    return [float(row['episode_return']) for row in csv.DictReader(file)]
