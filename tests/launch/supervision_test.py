"""Tests of how the launcher watches, where whole runs would be slow."""

import time

import courier
import portpicker
import pytest

from repertory import launch
from repertory.launch import failures
from repertory.launch.host import interrupts
from repertory.launch.launchers import supervision
from repertory.launch.runs import resuming


class _Workers:
  """Of a program whose coordinator has been killed."""

  names = ('coordinator', 'learner')

  def is_alive(self, name):
    return name != 'coordinator'

  def find_ended(self):
    return ['coordinator']

  def failure_of(self, name):
    return failures.Failure(
      name, 'Its process ended with signal 9.', False, True
    )

  def log_of(self, name):
    return f'\nEnd of {name}.'


@pytest.fixture
def session(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path / 'run')
  )
  with resuming.open_session(experiment) as session:
    yield session


def test_coordinator_that_dies_between_two_calls_is_named(session):
  watch = supervision._Watch(
    session, 'dqn on catch', interrupts.Interruption(), lambda status: None
  )
  watch._workers = _Workers()
  # Nobody answers, and Courier would wait for ten minutes.
  address = f'localhost:{portpicker.pick_unused_port()}'
  watch._coordinator = courier.Client(address, call_timeout=600)
  start = time.monotonic()
  with pytest.raises(launch.NodeError, match='signal 9') as caught:
    watch._restart_ended()
  assert caught.value.failure.node == 'coordinator'
  assert caught.value.failure.is_lost
  assert time.monotonic() - start < 20
