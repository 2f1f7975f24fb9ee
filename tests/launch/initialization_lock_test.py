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
from repertory.launch.nodes import initialization_lock, learner
from repertory.launch.opening import resuming
from support.launch import lone_nodes

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
  with resuming.open_session(experiment) as session:
    coordinator = coordinator_lib.Coordinator(session, '')
    with contextlib.closing(coordinator):
      yield session, coordinator


def _make_learner(session, coordinator):
  """Returns the initial variables of a learner."""
  context = lone_nodes.make_context('learner', coordinator)
  transport = session.make_in_process_transport(context.stop)
  with contextlib.closing(
    learner.LearnerNode(context, session, transport)
  ) as made:
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
    with initialization_lock.held(context):
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


class TestAlone:
  @pytest.fixture(autouse=True)
  def _set_up(self, run, monkeypatch):
    _, self.coordinator = run
    self.context = lone_nodes.make_context('actor/0', self.coordinator)
    self.heard, poll = queue.Queue(), self.coordinator.poll

    def note_and_poll(node):
      self.heard.put(node)
      return poll(node)

    self.messages = []
    monkeypatch.setattr(self.coordinator, 'poll', note_and_poll)
    monkeypatch.setattr(
      self.coordinator,
      'report_start',
      lambda *messages: self.messages.append(messages),
    )

  def make_alone(self, context):
    return initialization_lock.held(context)

  def enter(self):
    with self.make_alone(self.context):
      return 'alone'

  @contextlib.contextmanager
  def waiting(self):
    """Lets a node wait for another one; yields its result."""
    other = lone_nodes.make_context('learner', self.coordinator)
    with (
      futures.ThreadPoolExecutor() as threads,
      self.make_alone(other),
      self.make_alone(other),  # The lock is reentrant.
    ):
      waits = threads.submit(self.enter)
      yield waits

  def test_waits_for_the_lock_and_sends_heartbeats(self):
    with self.waiting() as waits:
      for _ in range(3):
        assert self.heard.get(timeout=_SECONDS) == 'actor/0'
      assert not waits.done()
    assert waits.result(_SECONDS) == 'alone'
    assert self.messages == [
      ('actor/0', 'waiting for other nodes to make their networks')
    ]
