"""Tests of learners that average parameters with their neighbors."""

import itertools
import json
import os
import zipfile

import numpy as np
import pytest

from repertory import launch
from repertory.launch.experiments import directories
from repertory.launch.nodes import joint_checkpoints
from repertory.launch.topologies import gossip as topology_lib
from support.launch import log_files

pytestmark = pytest.mark.usefixtures('threads_end')

_IMPALA = {
  'unroll_length': 5,
  'batch_size': 2,
  'hidden_sizes': (8,),
  'jit_compile': False,
}
_DQN = {
  'hidden_sizes': (8,),
  'min_replay_size': 50,
  'batch_size': 8,
  'samples_per_insert': 1.0,
  'jit_compile': False,
}


def _run(
  directory, agent='impala', topology=None, max_steps=1_000, **settings
):  # fmt: skip
  experiment = launch.make_experiment(
    agent, 'gym:CartPole-v1', directory=str(directory), max_steps=max_steps,
    config=_IMPALA if agent == 'impala' else _DQN,
    **{'num_actors': 2, 'environments_per_actor': 2,
       'evaluation_episodes': 0, **settings},
  )  # fmt: skip
  chosen = topology_lib.Gossip() if topology is None else topology
  return launch.run(experiment, chosen, display=False)


def _parts_of(directory):
  """Reads the part of each learner from the latest checkpoint."""
  checkpoint = directories.load_checkpoint(str(directory))
  assert checkpoint is not None and checkpoint.replay_path is not None
  found = []
  for archive in _archives_of(checkpoint):
    with archive:
      found.append(joint_checkpoints.read_arrays(archive.filename))
  return found, checkpoint


def _steps_of_each(checkpoint):
  """Returns the environment steps of each learner in a checkpoint."""
  found = []
  for archive in _archives_of(checkpoint):
    with archive:
      state = json.loads(archive.read('state.json'))
      found.append(state['counts']['steps'])
  return found


def _archives_of(checkpoint):
  folder = checkpoint.replay_path
  for name in sorted(os.listdir(folder)):
    yield zipfile.ZipFile(os.path.join(folder, name))


class TestCounts:
  def test_all_steps_are_taken_and_learned_from(self, tmp_path):
    topology = topology_lib.Gossip(num_learners=2)
    settings = {
      'agent': 'dqn',
      'topology': topology,
      'environments_per_actor': 4,
      'evaluation_episodes': 2,
    }
    status = _run(tmp_path, **settings).status
    assert 1_000 <= status.steps < 1_004
    nodes = {row['node']: row for row in log_files.nodes(tmp_path)}
    assert nodes['actor_learner/0']['environment_ids'] == [0, 1, 2, 3]
    assert nodes['actor_learner/1']['environment_ids'] == [4, 5, 6, 7]
    assert nodes['actor_learner/1']['pid'] == os.getpid()
    # Exploration follows from the environment's id over all learners.
    epsilons = itertools.chain.from_iterable(
      nodes[name]['epsilons'] for name in topology.learners
    )
    assert list(epsilons) == pytest.approx([0.4 ** (1 + i) for i in range(8)])
    parts, checkpoint = _parts_of(tmp_path)
    assert len(parts) == 2
    steps = [int(part['learner_steps']) for part in parts]
    assert sum(steps) == status.learner_steps > 100
    rows = log_files.rows(tmp_path, 'learner')
    acted = _steps_of_each(checkpoint)
    assert sum(acted) == status.steps
    for name, num_updates, num_steps in zip(topology.learners, steps, acted):
      # 8 rows of each batch, 1 sample per insert, after the first 50 of each.
      # The first one made may take nearly all steps.
      due = max(0, num_steps - 50) / 8
      assert num_updates == pytest.approx(due, abs=4), name
      logged = [row for row in rows if row['node'] == name]
      assert log_files.total(logged) == num_updates
    actors = log_files.rows(tmp_path, 'actors')
    assert log_files.total(actors) == status.episodes
    # What counts is the mean of all.
    for name, array in checkpoint.arrays.items():
      if np.issubdtype(array.dtype, np.floating):
        mean = np.mean([part[name].astype(np.float64) for part in parts], 0)
        np.testing.assert_array_equal(array, mean.astype(array.dtype), name)
    assert status.evaluation_return is not None
    assert [row['node'] for row in status.learners] == topology.learners
    assert status.learners_distance is not None
    rows = log_files.rows(tmp_path, 'gossip')
    assert {row['node'] for row in rows} == set(topology.learners)


class TestResuming:
  @pytest.mark.chaos
  def test_each_resumes_from_its_own_state(self, tmp_path):
    settings = {'agent': 'dqn', 'topology': topology_lib.Gossip(2)}
    first = _run(tmp_path, **settings, max_steps=600).status
    second = _run(tmp_path, **settings, max_steps=1_200).status
    assert second.message == 'resumed from checkpoint 00000001'
    assert 1_200 <= second.steps < 1_204
    assert second.learner_steps > first.learner_steps
    # On average; each has what it had before.
    (before,), (after,) = first.tables, second.tables
    assert before.size > 200 and after.size > before.size + 200

  @pytest.mark.chaos
  def test_may_change_their_number_and_the_topology(self, tmp_path):
    dqn = {'agent': 'dqn'}
    _run(tmp_path, **dqn, topology=topology_lib.Gossip(2), max_steps=400)
    status = _run(
      tmp_path, **dqn, topology=topology_lib.Gossip(4), max_steps=800
    ).status
    assert 'all begin with the mean' in status.message
    before = _parts_of(tmp_path)[1]
    status = _run(tmp_path, **dqn, topology='single', max_steps=1_200).status
    assert 'in the format of another replay' in status.message
    steps = before.state['counts']['learner_steps']
    assert status.learner_steps > steps > 0
    status = _run(
      tmp_path, **dqn, topology=topology_lib.Gossip(2), max_steps=1_600
    ).status
    assert 1_600 <= status.steps < 1_604


class TestRefusals:
  @pytest.mark.parametrize(
    ('topology', 'message'),
    [
      # Of 2 actors with 2 environments each.
      (
        {'num_learners': 3},
        r'num_learners must divide the 4 environments.*\(num_actors=3\)',
      ),
      ({'graph': 'star'}, "graph must be one of ring.*'star'"),
      ({'mix_period': 0}, 'mix_period must be at least 1, got 0'),
      ({'mix_weight': 1.0}, 'mix_weight must be above 0 and below 1, got 1'),
    ],
  )
  def test_bad_settings(self, tmp_path, topology, message):
    with pytest.raises(ValueError, match=message):
      _run(tmp_path / 'run', topology=topology_lib.Gossip(**topology))
    assert not (tmp_path / 'run').exists()

  def test_a_share_too_small_to_learn_from(self, tmp_path):
    with pytest.raises(
      ValueError, match=r'max_steps must be higher.*of one of 4 learners'
    ):
      _run(
        tmp_path / 'run', 'dqn', max_steps=120, topology=topology_lib.Gossip(4)
      )
