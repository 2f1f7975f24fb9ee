"""Tests of deterministic runs of `single`, stopped and resumed or not."""

import dataclasses
import functools
import itertools
import shutil

import cloudpickle
import dm_env
import numpy as np
import pytest
import tensorflow as tf
from dm_env import specs

from repertory import launch
from repertory.agents import dqn, impala, r2d2, sac
from repertory.components import interfaces
from repertory.components.checkpoints import checkpointing
from repertory.environments.adapters import gymnasium_adapter
from repertory.environments.registry import registry
from repertory.launch.nodes import one_thread
from support.system import rare_cases

_STEPS = 240


def _dqn(**settings):
  return dqn.DQNBuilder(
    dqn.DQNConfig(
      hidden_sizes=(8,), batch_size=4, min_replay_size=40, n_step=3, **settings
    )
  )


def _impala():
  return impala.IMPALABuilder(
    impala.IMPALAConfig(unroll_length=5, batch_size=4, hidden_sizes=(8,))
  )


def _r2d2():
  return r2d2.R2D2Builder(
    r2d2.R2D2Config(
      core_size=8,
      hidden_sizes=(8,),
      burn_in_length=2,
      unroll_length=6,
      batch_size=4,
      min_replay_size=20,
    )
  )


def _sac():
  return sac.SACBuilder(
    sac.SACConfig(
      hidden_sizes=(8,),
      batch_size=4,
      min_replay_size=40,
      samples_per_insert=8.0,
    )
  )


def _run(
  directory, builder, environments, max_steps=_STEPS, topology='single',
  **settings,
):  # fmt: skip
  if isinstance(environments, str):
    environments = registry.make_factory(environments)
  experiment = launch.Experiment(
    builder, environments, max_steps=max_steps, directory=str(directory),
    environments_per_actor=3, evaluation_episodes=0, deterministic=True,
    seed=7,
  )  # fmt: skip
  experiment = dataclasses.replace(experiment, **settings)
  return launch.run(experiment, topology, display=False)


_CASES = {
  'tensors': (lambda: _dqn(prioritized=False), 'tensor:catch'),
  'unrolls': (_impala, 'gym:CartPole-v1'),
  'sequences': (_r2d2, 'memory_chain:4'),
  'continuous actions': (_sac, 'tensor:pendulum'),
}


@pytest.mark.parametrize('case', rare_cases.daily(_CASES, ['tensors']))
def test_stopped_and_resumed_is_never_stopped(tmp_path, case):
  make_builder, environments = _CASES[case]
  whole = _run(tmp_path / 'whole', make_builder(), environments)
  for max_steps in (100, _STEPS):  # In the middle of an episode and an item.
    last = _run(tmp_path / 'parts', make_builder(), environments, max_steps)
  assert whole.status.learner_steps > 10
  assert last.status.learner_steps == whole.status.learner_steps
  assert last.variables_sha256 == whole.variables_sha256


@pytest.mark.chaos
def test_from_intermediate_checkpoints(tmp_path, monkeypatch):
  monkeypatch.setattr(one_thread, '_REPORT_PERIOD_SECONDS', 0.0)
  whole = _run(tmp_path / 'whole', _dqn(), 'catch')
  directory = tmp_path / 'all'
  result = _run(
    directory,
    _dqn(),
    'catch',
    checkpoint_period_learner_steps=200,
    checkpoints_to_keep=99,
  )
  assert result.variables_sha256 == whole.variables_sha256
  checkpoints = sorted((directory / 'checkpoints').glob('0*'))
  assert len(checkpoints) > 2
  for checkpoint in checkpoints[:-1:2]:
    parts = tmp_path / checkpoint.name
    shutil.copytree(checkpoint, parts / 'checkpoints' / checkpoint.name)
    last = _run(parts, _dqn(), 'catch')
    assert last.variables_sha256 == whole.variables_sha256, checkpoint.name


class _Open(dm_env.Environment):
  """Cannot be pickled from its first or second reset on."""

  def __init__(self, seed, resets_before=0):
    self._numbers = itertools.count(seed)
    self._kept = None
    self._resets_before = resets_before
    self._open()

  def _open(self):
    if self._resets_before == 0:
      self._kept = (number for number in range(3))
    self._resets_before -= 1

  def reset(self):
    self._open()
    return dm_env.restart(self._observe())

  def step(self, action):
    return dm_env.termination(float(action), self._observe())

  def _observe(self):
    return np.full(1, next(self._numbers) % 2, np.float32)

  def observation_spec(self):
    return specs.Array((1,), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2)


@pytest.mark.chaos
def test_environments_that_cannot_be_pickled_are_named(tmp_path):
  environments = functools.partial(_Open, resets_before=2)
  result = _run(tmp_path, _dqn(), environments, 100)
  logged = (tmp_path / 'logs' / 'nodes.jsonl').read_text()
  expected = "cannot be pickled: TypeError: cannot pickle 'generator'"
  assert logged.count(expected) == 1
  with pytest.raises(checkpointing.CheckpointError, match='can be pickled'):
    _run(tmp_path, _dqn(), environments)
  resumed = _run(tmp_path, _dqn(), environments, deterministic=False)
  assert resumed.status.learner_steps > result.status.learner_steps


def test_pickles_that_keep_arguments_alone_are_refused():
  gymnasium = pytest.importorskip('gymnasium')

  class Renewed(gymnasium.Env, gymnasium.utils.EzPickle):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
      gymnasium.utils.EzPickle.__init__(self)

  adapter = gymnasium_adapter.GymnasiumAdapter(Renewed(), 0)
  with pytest.raises(TypeError, match='Renewed is pickled by its arguments'):
    cloudpickle.dumps(adapter)


@pytest.mark.chaos
def test_checkpoints_without_environments_are_refused(tmp_path):
  for directory, settings in (
    (tmp_path / 'without_replay', {'checkpoint_replay': False}),
    (tmp_path / 'another_road', {'deterministic': False}),
  ):
    _run(directory, _dqn(), 'catch', 100, **settings)
    with pytest.raises(checkpointing.CheckpointError, match='lacks the state'):
      _run(directory, _dqn(), 'catch')


class _Picking(interfaces.Update):
  """Takes a slice with an index known only at run time."""

  def __init__(self, update):
    super().__init__()
    self._update = update

  def __call__(self, sample):
    result = self._update(sample)
    place = tf.argmax(sample.probabilities)
    weight = tf.cast(sample.probabilities[place], tf.float32)
    return result._replace(metrics={**result.metrics, 'weight': weight})

  @property
  def exports(self):
    return self._update.exports


class _PickingBuilder(dqn.DQNBuilder):
  def make_update(self, network, spec):
    return _Picking(super().make_update(network, spec))


@pytest.mark.chaos
def test_slices_compiled_differently_by_xla_are_refused(tmp_path):
  builder = _PickingBuilder(_dqn(prioritized=False).config)
  with pytest.raises(launch.NodeError, match='no slices') as caught:
    _run(tmp_path / '1', builder, 'tensor:catch')
  assert 'strided_slice' in str(caught.value)
  # It is no matter without XLA.
  settings = dataclasses.replace(builder.config, jit_compile=False)
  _run(tmp_path / '2', _PickingBuilder(settings), 'tensor:catch')
