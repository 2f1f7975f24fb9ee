"""Tests of runs in rounds that are stopped and resumed to the bit."""

import os
import pathlib
import shutil
import signal
import time

import dm_env
import numpy as np
import pytest
from dm_env import specs

from repertory import launch
from repertory.agents import impala
from repertory.components import checkpointing
from repertory.environments import registry
from repertory.launch.coordination import reports
from repertory.launch.nodes import checkpoints
from repertory.launch.nodes import learner as learner_lib
from repertory.launch.topologies import sebulba

_STEPS = 600
_NUM_ENVIRONMENTS = 4


def _run(directory, threads=2, *, steps=_STEPS, env='gym:CartPole-v1', **more):
  builder = impala.IMPALABuilder(
    impala.IMPALAConfig(
      unroll_length=5,
      batch_size=3,  # So that some unrolls are left over.
      hidden_sizes=(8,),
      jit_compile=False,
    )
  )
  if isinstance(env, str):
    env = registry.make_factory(env)
  experiment = launch.Experiment(
    builder, env, max_steps=steps, directory=str(directory),
    num_actors=_NUM_ENVIRONMENTS, evaluation_episodes=0, deterministic=True,
    timeout_seconds=60.0, **more,
  )  # fmt: skip
  return launch.run(experiment, sebulba.Sebulba(threads), display=False)


def _hash(result):
  return result.variables_sha256, result.status.steps, result.status.episodes


@pytest.fixture(scope='module', name='whole')
def _whole(tmp_path_factory):
  """The hash of a run that was not stopped."""
  result = _run(tmp_path_factory.mktemp('whole'))
  assert result.status.learner_steps > 30
  return _hash(result)


def test_stopped_by_its_steps(tmp_path, whole):
  # It goes on by up to two rounds of 20 steps; the second time from there.
  for steps in (100, 300, _STEPS):
    last = _run(tmp_path, steps=steps)
  assert 'resumed from checkpoint' in last.status.message
  assert _hash(last) == whole


def test_interrupted(tmp_path, monkeypatch, whole):
  step, updates = learner_lib.LearnerNode.step, []

  def step_and_interrupt(node):
    step(node)
    updates.append(1)
    if len(updates) == 20:
      os.kill(os.getpid(), signal.SIGINT)
      # Until that is heard of: what is left to do would take less time.
      deadline = time.monotonic() + 30
      while node._phase != reports.STOPPING:
        assert time.monotonic() < deadline
        time.sleep(0.01)

  with monkeypatch.context() as patched:
    patched.setattr(learner_lib.LearnerNode, 'step', step_and_interrupt)
    stopped = _run(tmp_path)
  assert stopped.interrupted == signal.SIGINT
  assert 0 < stopped.status.steps < _STEPS
  assert _hash(_run(tmp_path)) == whole


@pytest.mark.parametrize('threads', [1, 4])
def test_from_checkpoints_of_a_run_that_went_on(
  tmp_path, whole, threads, monkeypatch
):
  write_if_due = checkpoints.CheckpointWriter.write_if_due

  def write_each(writer):
    writer._settle(wait=True)  # On a slow disk it would be long before another.
    write_if_due(writer)

  directory = tmp_path / 'all'
  monkeypatch.setattr(checkpoints.CheckpointWriter, 'write_if_due', write_each)
  result = _run(
    directory,
    threads,
    checkpoint_period_learner_steps=6,
    checkpoints_to_keep=99,
  )
  assert _hash(result) == whole  # Saving makes no difference.
  names = sorted(path.name for path in (directory / 'checkpoints').glob('0*'))
  assert len(names) > 3
  for name in names[:-1]:
    parts = tmp_path / name
    (parts / 'checkpoints').mkdir(parents=True)
    shutil.copytree(
      directory / 'checkpoints' / name, parts / 'checkpoints' / name
    )
    assert _hash(_run(parts, threads)) == whole, name


def test_another_number_of_threads_is_refused(tmp_path):
  _run(tmp_path, 2, steps=50)
  with pytest.raises(
    checkpointing.CheckpointError,
    match=r"'sebulba with 2 threads that act'.*'sebulba with 1 thread that act",
  ):
    _run(tmp_path, 1)


class _Open(dm_env.Environment):
  """Cannot be pickled, if its seed is even."""

  def __init__(self, seed):
    self._kept = (number for number in range(3)) if seed % 2 == 0 else None

  def reset(self):
    return dm_env.restart(np.zeros(1, np.float32))

  def step(self, action):
    return dm_env.termination(float(action), np.ones(1, np.float32))

  def observation_spec(self):
    return specs.Array((1,), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2)


def test_environments_that_cannot_be_pickled_are_named(tmp_path):
  result = _run(
    tmp_path, env=_Open, steps=200, checkpoint_period_learner_steps=3
  )
  assert result.status.steps >= 200
  logged = pathlib.Path(tmp_path, 'logs', 'nodes.jsonl').read_text()
  assert "cannot be pickled: TypeError: cannot pickle 'generator'" in logged
  with pytest.raises(checkpointing.CheckpointError, match='can be pickled'):
    _run(tmp_path, env=_Open)
