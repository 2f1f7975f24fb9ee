"""Tests of the base class of acting nodes."""

import pytest

from repertory import launch
from repertory.launch.coordination import coordinator
from repertory.launch.nodes import acting, policies
from support.launch import lone_nodes, sessions


class _Loop:
  """Steps four environments, or raises."""

  environment, environment_seconds = None, 0.0

  def __init__(self, raises_at=None):
    self._raises_at = raises_at
    self._calls = 0

  def step(self):
    self._calls += 1
    if self._calls == self._raises_at:
      raise RuntimeError('out of balls')
    return 4, []


@pytest.fixture(name='session')
def _session(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=400, directory=str(tmp_path / 'run'),
    environments_per_actor=8,
  )  # fmt: skip
  with sessions.open_session(experiment) as session:
    yield session


def test_steps_before_a_loop_raised_are_counted_once(session):
  counts = coordinator.Coordinator(session)
  node = acting.ActingNode(
    lone_nodes.make_context('actor/0', counts),
    [_Loop(), _Loop(raises_at=3)],
    range(8),
  )
  with pytest.raises(RuntimeError, match='out of balls'):
    node.run()
  node.report()
  # Three times the first loop, twice the second.
  assert counts.status().steps == 5 * 4
  granted = 0
  while more := counts.acquire_steps('actor/0', 1):
    granted += more
  assert granted == 400 - 5 * 4
  counts.close()


def test_policy_of_a_restarted_node_gets_the_step_count(
  session,
):
  counts = coordinator.Coordinator(session)
  network = session.experiment.builder.make_network(session.spec)

  def states(generation):
    context = lone_nodes.make_context('actor/0', counts, generation=generation)
    policy = policies.make_training_policy(context, session, network)
    return policy.initial_state([0, 1])

  first = states(0)
  context = lone_nodes.make_context('actor/0', counts)
  node = acting.ActingNode(context, [_Loop()], range(4))
  node.run()
  node.report()
  again = states(1)
  assert first['steps'].numpy().tolist() == [0, 0]
  # 400 steps of 8 environments.
  assert again['steps'].numpy().tolist() == [50, 50]
  assert first['random'].numpy().tolist() != again['random'].numpy().tolist()
  counts.close()


def test_steps_are_returned_once_if_acquiring_fails():
  class Coordinator:
    returned = 0

    def return_steps(self, node, unused):
      assert node == 'actor/0'
      self.returned += unused

    def acquire_steps(self, node, wanted):
      if self.returned:
        raise ConnectionError('gone')
      return wanted + 3

  counts = Coordinator()
  context = lone_nodes.make_context('actor/0', counts)
  with pytest.raises(ConnectionError, match='gone'):
    acting.ActingNode(context, [_Loop()], range(4)).run()
  assert counts.returned == 3  # Of 7, for 4 were taken.
