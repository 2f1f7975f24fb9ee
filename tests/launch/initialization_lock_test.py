"""Tests of the initialization lock of a process."""

import contextlib
import queue
import threading
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf

from repertory import launch
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.nodes import learner
from support.launch import lone_nodes, sessions

_SECONDS = 60


@pytest.fixture(name='run')
def _run(tmp_path):
  """Runs an agent that draws random numbers for networks and update."""
  experiment = launch.make_experiment(
    'dqn',
    'catch',
    max_steps=1000,
    directory=str(tmp_path),
    evaluation_episodes=0,
    config={'hidden_sizes': (8,), 'noisy': True, 'jit_compile': False},
  )
  with sessions.open_session(experiment) as session:
    coordinator = coordinator_lib.Coordinator(session)
    with contextlib.closing(coordinator):
      yield session, coordinator


def _make_learner(session, coordinator):
  """Returns the initial variables of a learner."""
  context = lone_nodes.make_context('learner', coordinator)
  transport = session.make_in_process_transport(context.stop)
  with context.closing:
    made = learner.LearnerNode(context, session, transport)
    return [variable.numpy() for variable in made._update.variables]


def test_network_made_beside_a_learner_does_not_change_it(run, monkeypatch):
  session, coordinator = run
  expected = _make_learner(session, coordinator)
  set_seed = tf.random.set_seed
  is_set, is_made = threading.Event(), threading.Event()

  def set_seed_and_wait(seed):
    set_seed(seed)
    is_set.set()
    is_made.wait(0.3)  # Which cannot be.

  def make_actor_network():
    assert is_set.wait(_SECONDS)
    context = lone_nodes.make_context('actor/0', coordinator)
    with context.initializing():
      session.experiment.builder.make_network(session.spec)
    is_made.set()

  monkeypatch.setattr(tf.random, 'set_seed', set_seed_and_wait)
  with futures.ThreadPoolExecutor() as threads:
    actor = threads.submit(make_actor_network)
    found = _make_learner(session, coordinator)
    actor.result(_SECONDS)
  assert len(found) == len(expected)
  for one, other in zip(found, expected, strict=True):
    np.testing.assert_array_equal(one, other)


def test_waits_for_the_lock_and_sends_heartbeats(run, monkeypatch):
  _, coordinator = run
  context, other = (
    lone_nodes.make_context(name, coordinator)
    for name in ('actor/0', 'learner')
  )
  heard, messages, poll = queue.Queue(), [], coordinator.poll

  def note_and_poll(node):
    heard.put(node)
    return poll(node)

  def enter():
    with context.initializing():
      return 'alone'

  monkeypatch.setattr(coordinator, 'poll', note_and_poll)
  monkeypatch.setattr(
    coordinator, 'report_start', lambda *message: messages.append(message)
  )
  with futures.ThreadPoolExecutor() as threads:
    with (
      other.initializing(),
      other.initializing(),  # The lock is reentrant.
    ):
      waits = threads.submit(enter)
      for _ in range(3):
        assert heard.get(timeout=_SECONDS) == 'actor/0'
      assert not waits.done()
    assert waits.result(_SECONDS) == 'alone'
  assert messages == [
    ('actor/0', 'waiting for other nodes to make their networks')
  ]
