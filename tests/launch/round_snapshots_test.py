"""Tests of snapshots of rounds: resumed runs are bitwise equal."""

import os
import pathlib
import pickle
import shutil
import signal
import threading
import time
from typing import Any

import dm_env
import numpy as np
import pytest
from dm_env import specs

from repertory import launch
from repertory.agents import impala
from repertory.components.checkpoints import checkpointing
from repertory.environments.adapters import gymnasium_adapter
from repertory.environments.registry import registry
from repertory.launch.coordination import reports
from repertory.launch.nodes import (
  actor,
  checkpoints,
  rounds,
)
from repertory.launch.nodes import learner as learner_lib
from repertory.launch.topologies import sebulba
from support.agents import acting_policies

_STEPS = 400
_NUM_ENVIRONMENTS = 4


def _impala(**settings):
  return acting_policies.row_by_row(impala.IMPALABuilder)(
    impala.IMPALAConfig(
      unroll_length=5,
      batch_size=3,  # So that some unrolls are left over.
      hidden_sizes=(8,),
      jit_compile=False,
      **settings,
    )
  )


def _run(
  directory,
  threads=2,
  *,
  make_builder=_impala,
  steps=_STEPS,
  env='gym:CartPole-v1',
  **more,
):
  if isinstance(env, str):
    env = registry.make_factory(env)
  experiment = launch.Experiment(
    make_builder(), env, max_steps=steps, directory=str(directory),
    num_actors=_NUM_ENVIRONMENTS, environments_per_actor=1,
    evaluation_episodes=0, deterministic=True, timeout_seconds=60.0, **more,
  )  # fmt: skip
  return launch.run(experiment, sebulba.Sebulba(threads), display=False)


def _hash(result):
  return result.variables_sha256, result.status.steps, result.status.episodes


@pytest.fixture(scope='module', name='whole')
def _whole(tmp_path_factory):
  """The hash of an uninterrupted run."""
  result = _run(tmp_path_factory.mktemp('whole'))
  assert result.status.learner_steps > 20
  return _hash(result)


@pytest.mark.chaos
def test_interrupted(tmp_path, monkeypatch, whole):
  step, updates = learner_lib.LearnerNode.step, []

  def step_and_interrupt(node):
    step(node)
    updates.append(1)
    if len(updates) == 10:
      os.kill(os.getpid(), signal.SIGINT)
      # Until the others have noticed.
      deadline = time.monotonic() + 30
      while node._phase != reports.STOPPING:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    if len(updates) >= 10:
      time.sleep(0.1)  # Time for the others to notice it, too.

  with monkeypatch.context() as patched:
    patched.setattr(learner_lib.LearnerNode, 'step', step_and_interrupt)
    stopped = _run(tmp_path)
  assert stopped.interrupted == signal.SIGINT
  assert 0 < stopped.status.steps < _STEPS
  assert _hash(_run(tmp_path)) == whole


@pytest.mark.chaos
def test_from_intermediate_checkpoints(tmp_path, whole, monkeypatch):
  threads = 4
  write_if_due = checkpoints.CheckpointWriter.write_if_due

  def write_each(writer):
    writer._settle(wait=True)  # On a slow disk it would be long before another.
    write_if_due(writer)

  directory = tmp_path / 'all'
  monkeypatch.setattr(checkpoints.CheckpointWriter, 'write_if_due', write_each)
  result = _run(
    directory,
    threads,
    checkpoint_period_learner_steps=12,
    checkpoints_to_keep=99,
  )
  assert _hash(result) == whole  # Saving makes no difference.
  names = sorted(path.name for path in (directory / 'checkpoints').glob('0*'))
  assert len(names) > 2
  for name in names[:-1]:
    parts = tmp_path / name
    (parts / 'checkpoints').mkdir(parents=True)
    shutil.copytree(
      directory / 'checkpoints' / name, parts / 'checkpoints' / name
    )
    assert _hash(_run(parts, threads)) == whole, name


@pytest.mark.chaos
def test_rounds_that_do_not_end_in_time(tmp_path, monkeypatch, whole):
  _run(tmp_path, steps=100)
  step = gymnasium_adapter.GymnasiumAdapter.step
  interrupted = threading.Event()

  def interrupt_and_step(environment, action):
    if not interrupted.is_set():
      interrupted.set()
      os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)  # A round has five for each thread, twice.
    return step(environment, action)

  with monkeypatch.context() as patched:
    patched.setattr(
      gymnasium_adapter.GymnasiumAdapter, 'step', interrupt_and_step
    )
    patched.setattr(rounds, '_FINISH_SECONDS', 0.5)
    assert _run(tmp_path).interrupted == signal.SIGINT
  with pytest.raises(checkpointing.CheckpointError, match='middle of a step'):
    _run(tmp_path)
  *_, newest = sorted((tmp_path / 'checkpoints').glob('0*'))
  shutil.rmtree(newest)
  assert _hash(_run(tmp_path)) == whole  # The one before is as it was.


def test_failed_actor_ends_the_wait_for_all_actors(tmp_path, monkeypatch):
  wait, is_waiting = rounds.Rounds.wait_for_actors, threading.Event()
  flush = actor.ActorNode.flush

  def note_and_wait(one, stop):
    if one._num_begun:
      is_waiting.set()
    wait(one, stop)

  def flush_or_fail(one):
    if one.name == 'actor/0':
      assert is_waiting.wait(60)
      raise RuntimeError('broken')
    flush(one)

  monkeypatch.setattr(rounds.Rounds, 'wait_for_actors', note_and_wait)
  monkeypatch.setattr(actor.ActorNode, 'flush', flush_or_fail)
  with pytest.raises(launch.NodeError, match=r'(?s)actor/0.*broken'):
    _run(tmp_path, checkpoint_period_learner_steps=3)


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


def test_actors_that_cannot_be_read_are_named():
  lone: Any = None  # It is read before anything is done with it.
  of_earlier_version = pickle.dumps((3, {}, {}, []))
  for read, advice in (
    (lambda: rounds._read(b'?'), ''),
    (lambda: rounds._read(of_earlier_version), ''),
    (
      lambda: actor.ActorNode.restore(lone, b'?'),
      r'\. Environments of another version .* Leave deterministic out',
    ),
  ):
    message = f'state of actors in the checkpoint cannot be read: .*{advice}'
    with pytest.raises(checkpointing.CheckpointError, match=message):
      read()
