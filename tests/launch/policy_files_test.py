"""Tests that a policy is read from files of its own in a checkpoint."""

import dataclasses
import json
import os
from typing import NamedTuple

import numpy as np
import pytest

from repertory import launch
from repertory.components import specs
from repertory.components.checkpoints import checkpointing
from repertory.components.config.settings import SettingError
from repertory.environments.games import catch
from repertory.environments.registry import registry
from support.agents import trained_agents
from support.launch import stack_checkpoints


@pytest.fixture(name='run')
def _run(tmp_path):
  """Returns the directory of a run of DQN on Catch, untrained."""
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1, directory=str(tmp_path / 'run'),
    config={'hidden_sizes': (6,), 'jit_compile': False},
  )  # fmt: skip
  trained_agents.write_checkpoint(experiment)
  return experiment.directory


def _change(run, **changes):
  """Writes a newer checkpoint whose description has other entries."""
  checkpointer = checkpointing.Checkpointer(f'{run}/checkpoints')
  whole, policy = checkpointer.load(), checkpointer.load_policy()
  assert whole is not None and policy is not None
  changed = {**policy.state, **changes}
  return checkpointer.save(whole.arrays, whole.state, policy=changed)


def _forbid(*arguments):
  raise AssertionError('Nothing is made.')


def test_two_files_are_enough(run, monkeypatch):
  observations = np.random.default_rng(0).normal(size=[40, 10, 5])
  expected = launch.load_policy(run).act(observations)
  assert len(set(expected.tolist())) > 1
  folder = f'{run}/checkpoints/00000001'
  for name in ('arrays.npz', 'state.json'):
    os.remove(f'{folder}/{name}')
  monkeypatch.setattr(registry.EnvironmentFactory, '__post_init__', _forbid)
  monkeypatch.setattr(launch.Experiment, '__post_init__', _forbid)
  policy = launch.load_policy(run)
  np.testing.assert_array_equal(policy.act(observations), expected)
  assert policy.spec.actions == catch.Catch(seed=0).action_spec()
  assert policy.steps == trained_agents.STEPS
  with open(f'{folder}/policy.json') as file:
    description = json.load(file)
  assert description['experiment']['config.hidden_sizes'] == [6]
  assert {'Python', 'TensorFlow', 'Sonnet'} < description['versions'].keys()


# The first two are earlier, and have no such files.
@pytest.mark.parametrize(
  'written',
  ['3.10-dqn-single', '3.11-dqn-single', '3.10-r2d2-server', '3.12-dqn-single'],
)
def test_checkpoints_of_all_stacks_are_read(written, tmp_path):
  case, facts = stack_checkpoints.unpack(written, tmp_path)
  policy = launch.load_policy(tmp_path)
  assert policy.learner_steps == facts['counts']['learner_steps']
  policy.act(np.zeros(policy.spec.observations.shape, np.float32))
  for run in (tmp_path, case.experiment(tmp_path)):
    (episode,) = launch.evaluate(run, 1)
    assert abs(episode.episode_return) == 1


class _Pair(NamedTuple):
  left: specs.Array
  right: specs.Array


def test_nests_that_json_lacks_are_asked_of_the_environment(
  tmp_path, monkeypatch
):
  experiment = trained_agents.make_experiment('sac', tmp_path)
  actions = experiment.environment_factory(0).action_spec()
  vector = specs.Array((3,), np.float32)
  made = trained_agents.Environment(_Pair(vector, vector), actions)
  monkeypatch.setattr(made, 'close', _forbid)  # It is needed no more.
  experiment = dataclasses.replace(
    experiment, environment_factory=lambda seed: made
  )
  trained_agents.write_checkpoint(experiment)
  assert 'spec' not in json.loads(
    (tmp_path / 'checkpoints' / '00000001' / 'policy.json').read_text()
  )
  policy = launch.load_policy(experiment)
  assert isinstance(policy.spec.observations, _Pair)
  assert policy.act(made.reset().observation).shape == (2,)


@pytest.mark.parametrize('use', [launch.evaluate, launch.record])
def test_other_environments_are_refused(tmp_path, use):
  experiment = trained_agents.make_experiment('sac', tmp_path)
  trained_agents.write_checkpoint(experiment)
  other = trained_agents.Environment(
    specs.Array((4,), np.float32), specs.DiscreteArray(3)
  )
  changed = dataclasses.replace(
    experiment, environment_factory=lambda seed: other
  )
  arguments = [str(tmp_path / 'data')] if use is launch.record else []
  message = (
    r'environment_factory must make .* observations .*\(3,\).*got .*\(4,\)'
  )
  with pytest.raises(SettingError, match=message):
    use(changed, 1, *arguments)

  def fail(seed):
    raise RuntimeError('no display')

  changed = dataclasses.replace(experiment, environment_factory=fail)
  with pytest.raises(ValueError, match="'own environment' cannot be made:\n"):
    use(changed, 1, *arguments)


class TestDamage:
  def test_variables_of_another_policy(self, run):
    checkpointer = checkpointing.Checkpointer(f'{run}/checkpoints')
    whole, policy = checkpointer.load(), checkpointer.load_policy()
    assert whole is not None and policy is not None
    arrays = {
      name: array[:1] if array.ndim else array
      for name, array in whole.arrays.items()
    }
    checkpointer.save(arrays, whole.state, policy=policy.state)
    with pytest.raises(
      checkpointing.CheckpointError,
      match=r'checkpoints/00000002 cannot be read: The saved arrays do not fit',
    ):
      launch.load_policy(run)

  def test_links(self, run, tmp_path):
    os.rename(f'{run}/checkpoints/00000001', tmp_path / 'other')
    os.symlink(tmp_path / 'other', f'{run}/checkpoints/00000001')
    with pytest.raises(SettingError, match='00000001 must be a folder and is'):
      launch.load_policy(run)

  @pytest.mark.parametrize(
    'spec',
    [
      3,
      {'observations': {}},
      {'observations': {'shape': [1], 'dtype': 'object', 'name': None}},
    ],
  )
  def test_specs_that_are_none(self, run, spec):
    _change(run, spec=spec)
    with pytest.raises(
      checkpointing.CheckpointError, match=r'The spec in .* cannot be read: '
    ):
      launch.load_policy(run)

  @pytest.mark.parametrize(
    ('counts', 'name'),
    [({}, "'steps'"), ({'steps': -1}, "'steps'"), ([], 'names')],
  )
  def test_counts_that_are_none(self, run, counts, name):
    saved = checkpointing.Checkpointer(f'{run}/checkpoints').load_policy()
    assert saved is not None
    # Counts are no settings of the experiment.
    experiment = {**saved.state['experiment'], 'steps': 1}
    _change(run, counts=counts, experiment=experiment)
    with pytest.raises(ValueError, match=f'must have {name}'):
      launch.load_policy(run)

  @pytest.mark.parametrize(
    ('name', 'kind'),
    [
      ('policy.json', 'fifo'),
      ('policy.json', 'bytes'),
      ('policy.npz', 'link'),
      ('policy.npz', 'nothing'),
    ],
  )
  def test_files_that_are_not_its_own(self, run, name, kind, tmp_path):
    path = f'{run}/checkpoints/00000001/{name}'
    if kind == 'bytes':
      os.truncate(path, 3)
    else:
      os.rename(path, tmp_path / 'outside')
    if kind == 'fifo':
      os.mkfifo(path)
    elif kind == 'link':
      os.symlink(tmp_path / 'outside', path)
    with pytest.raises(checkpointing.CheckpointError) as caught:
      launch.load_policy(run)
    assert '00000001 cannot be read: ' in str(caught.value)
    assert 'afresh' not in str(caught.value)
