"""Tests of the node registry."""

import pytest

from repertory.launch.coordination import node_registry


@pytest.fixture
def nodes():
  return node_registry.NodeRegistry(max_restarts=2)


def test_hanging_environment_is_overdue(nodes):
  nodes.register('actor/0')
  nodes.hear('actor/0', 10, environment_seconds=99)
  assert not nodes.find_overdue(30, 100)
  nodes.hear('actor/0', 10, environment_seconds=101)
  assert '101 seconds' in nodes.find_overdue(30, 100)['actor/0']
  # The time is that of the previous generation.
  nodes.mark_restarted('actor/0')
  assert not nodes.find_overdue(30, 100)


def test_acting_is_delayed_while_all_actors_that_are_left_start(nodes):
  nodes.expect(['actor/0', 'actor/1', 'actor/2', 'learner', 'evaluator'])
  nodes.register('learner')
  assert nodes.is_acting_delayed()
  nodes.register('actor/0')
  assert not nodes.is_acting_delayed()
  nodes.mark_restarted('actor/0')
  assert nodes.is_acting_delayed()
  for name in ('actor/0', 'actor/1', 'actor/2'):
    nodes.register(name)
  nodes.finish('actor/0')
  nodes.mark_restarted('actor/1')
  assert not nodes.is_acting_delayed()
  nodes.finish('actor/2')
  assert nodes.is_acting_delayed()
  nodes.finish('actor/1')
  assert not nodes.is_acting_delayed()
