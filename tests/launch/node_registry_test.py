"""Tests of the node registry."""

import pytest

from repertory.launch.coordination import node_registry


class _Clock:
  def __init__(self):
    self.now = 1000.0

  def __call__(self) -> float:
    return self.now


@pytest.fixture
def clock():
  return _Clock()


@pytest.fixture
def nodes(clock):
  return node_registry.NodeRegistry(max_restarts=2, clock=clock)


class TestRestarts:
  @pytest.mark.parametrize(
    ('name', 'may'), [('actor/3', True), ('learner', False)]
  )
  def test_only_replaceable_nodes(self, nodes, name, may):
    nodes.expect([name])
    nodes.register(name)
    assert nodes.may_restart(name) == may

  def test_no_node_beside_another(self, nodes):
    nodes.expect(['learner'])
    nodes.register('inference/0')
    assert not nodes.may_restart('inference/0')


class TestOverdue:
  def test_silence(self, nodes, clock):
    for name in ('actor/0', 'actor/1', 'actor/2'):
      nodes.register(name)
    clock.now += 20
    nodes.hear('actor/1')
    nodes.finish('actor/2')
    clock.now += 15
    overdue = nodes.find_overdue(30, 100)
    assert overdue == {'actor/0': 'It has not reported for 35 seconds.'}

  def test_environment(self, nodes):
    nodes.register('actor/0')
    nodes.hear('actor/0', 10, environment_seconds=99)
    assert not nodes.find_overdue(30, 100)
    nodes.hear('actor/0', 10, environment_seconds=101)
    assert '101 seconds' in nodes.find_overdue(30, 100)['actor/0']
    # The time is that of the previous generation.
    nodes.restart('actor/0')
    assert not nodes.find_overdue(30, 100)


class TestLaggard:
  def test_has_the_oldest_progress(self, nodes, clock):
    for name in ('actor/0', 'actor/1', 'learner', 'replay'):
      nodes.register(name)
      nodes.hear(name, None if name == 'replay' else 5)
    clock.now += 10
    nodes.hear('actor/0', 6)
    nodes.hear('learner', 6)
    clock.now += 10
    nodes.hear('actor/1', 5)
    nodes.hear('learner', 7)
    assert nodes.find_slowest() == 'actor/1'
    nodes.finish('actor/1')
    assert nodes.find_slowest() == 'actor/0'
    described = nodes.describe()
    assert 'last progress 10 s ago, at 6' in described['actor/0']
    assert 'last progress 0 s ago, at 7' in described['learner']


class TestActingIsDelayed:
  def test_while_all_actors_that_are_left_start(self, nodes):
    nodes.expect(['actor/0', 'actor/1', 'actor/2', 'learner', 'evaluator'])
    nodes.register('learner')
    assert nodes.is_acting_delayed()
    nodes.register('actor/0')
    assert not nodes.is_acting_delayed()
    nodes.restart('actor/0')
    assert nodes.is_acting_delayed()
    for name in ('actor/0', 'actor/1', 'actor/2'):
      nodes.register(name)
    nodes.finish('actor/0')
    nodes.restart('actor/1')
    assert not nodes.is_acting_delayed()
    nodes.finish('actor/2')
    assert nodes.is_acting_delayed()
    nodes.finish('actor/1')
    assert not nodes.is_acting_delayed()
