"""The agents for bounded continuous actions, in each topology for a while."""

import csv
import pathlib
import sys

import pytest

from repertory import launch
from repertory.agents.interface import registry
from support.environments import follow
from support.system import rare_cases

_SMALL = {
  'hidden_sizes': (8,),
  'batch_size': 8,
  'min_replay_size': 50,
  'samples_per_insert': 2.0,
}
_AGENTS = {
  'd4pg': {**_SMALL, 'prioritized': True, 'jit_compile': False},
  'mpo': {**_SMALL, 'distribution': 'categorical'},
  'sac': {**_SMALL, 'num_random_steps': 100},
}


def _run(
  directory, agent, max_steps, topology=('single',), environment=follow.Follow
):
  experiment = launch.Experiment(
    registry.make_builder(agent, _AGENTS[agent]),
    environment,
    max_steps=max_steps,
    directory=str(directory),
    num_actors=2,
    environments_per_actor=2,
    evaluation_episodes=4,
    timeout_seconds=60,
  )
  return launch.run(experiment, *topology, display=False).status


def _rows(directory, log):
  with pathlib.Path(directory, 'logs', f'{log}.csv').open() as file:
    return list(csv.DictReader(file))


@pytest.mark.parametrize('agent', rare_cases.daily(_AGENTS, ['sac']))
def test_runs_and_resumes(tmp_path, agent):
  first = _run(tmp_path, agent, 400)
  assert first.steps >= 400
  # (400 − 50) · 2 / 8 updates are due, but for the last items of the episodes.
  assert 80 <= first.learner_steps <= 88
  second = _run(tmp_path, agent, 800)
  assert second.steps >= 800
  assert 80 <= second.learner_steps - first.learner_steps <= 105
  assert len(_rows(tmp_path, 'evaluator')) >= 2


@pytest.mark.chaos
@pytest.mark.parametrize(
  ('agent', 'topology'),
  [
    ('d4pg', 'distributed'),
    ('mpo', 'distributed'),
    ('sac', 'distributed'),
    ('mpo', 'central'),
    ('sac', 'central'),
  ],
)
def test_runs_in_several_nodes(tmp_path, agent, topology):
  before, meanwhile = sys.getswitchinterval(), []

  def make_environment(seed):
    meanwhile.append(sys.getswitchinterval())
    return follow.Follow(seed)

  status = _run(
    tmp_path, agent, 1_000, (topology, 'local_mt'), make_environment
  )
  # Threads take turns more often while they share the interpreter.
  assert meanwhile[-1] < before
  assert sys.getswitchinterval() == before
  assert status.steps >= 1_000
  assert status.learner_steps > 50
  rows = _rows(tmp_path, 'learner')
  assert float(rows[-1]['learner_steps']) > 50
