"""Tests of `launch/nodes/making.py`, and of who makes networks alone."""

import contextlib
import threading
from concurrent import futures
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import lone_nodes
from repertory import launch
from repertory.components import signals
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.nodes import learner, making, policies
from repertory.launch.runs import resuming

_SECONDS = 60


@pytest.fixture(name='run')
def _run(tmp_path):
  """A session of an agent that draws numbers for networks and update."""
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
  """Returns all variables that a learner begins with."""
  context = lone_nodes.make_context('learner', coordinator)
  road = session.make_local_road(context.stop)
  with contextlib.closing(learner.LearnerNode(context, session, road)) as made:
    return [variable.numpy() for variable in made._update.variables]


def test_who_makes_a_network_beside_a_learner_does_not_disturb_it(
  run, monkeypatch
):
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
    source: Any = None  # It is not asked for anything.
    policies.fetch(context, session, source, 1)
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
  def _set_up(self, run):
    _, self.coordinator = run
    self.context = lone_nodes.make_context('actor/0', self.coordinator)

  def wait_in_vain(self, end):
    """Lets a node wait, ends its wait by `end` and returns how it ended."""

    def wait():
      with making.alone(self.context):
        raise AssertionError('Two were alone.')

    with (
      futures.ThreadPoolExecutor() as threads,
      making.alone(self.context),
      making.alone(self.context),  # Who is alone already stays alone.
    ):
      waiting = threads.submit(wait)
      end()
      return waiting.exception(_SECONDS)

  def test_waits_until_it_is_stopped(self):
    ended = self.wait_in_vain(self.context.stop.set)
    assert isinstance(ended, signals.Stopped)

  def test_hears_of_the_end_and_is_heard_of(self, monkeypatch):
    heard, poll = [], self.coordinator.poll

    def note_and_poll(node):
      heard.append(node)
      return poll(node)

    monkeypatch.setattr(self.coordinator, 'poll', note_and_poll)
    ended = self.wait_in_vain(lambda: self.coordinator.stop('enough'))
    assert isinstance(ended, signals.Stopped)
    assert set(heard) == {'actor/0'}

  def test_is_left_when_it_fails(self):
    with pytest.raises(ValueError), making.alone(self.context):
      raise ValueError
    with futures.ThreadPoolExecutor() as threads:
      threads.submit(self.enter).result(_SECONDS)

  def enter(self):
    with making.alone(self.context):
      pass
