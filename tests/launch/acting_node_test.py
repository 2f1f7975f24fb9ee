"""Tests of what nodes that step environments have in common."""

import pytest

from repertory import launch
from repertory.components import signals
from repertory.launch.coordination import coordinator
from repertory.launch.host import lifetime
from repertory.launch.nodes import acting, nodes
from repertory.launch.runs import session as session_lib


class _Loop:
  """Steps four environments, or raises."""

  environment_seconds = 0.0

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
  with session_lib.open_session(experiment) as session:
    yield session


def test_steps_before_a_loop_raised_are_counted_once(session):
  counts = coordinator.Coordinator(session, 'dqn on catch')
  node = acting.ActingNode(
    'actor/0', [_Loop(), _Loop(raises_at=3)], 8, counts, signals.StopSignal()
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


def test_policy_of_a_restarted_node_knows_how_far_the_run_is(
  session, monkeypatch
):
  counts = coordinator.Coordinator(session, 'dqn on catch')
  network = session.experiment.builder.make_network(session.spec)

  def states(life):
    monkeypatch.setenv(lifetime.LIFE_VARIABLE, str(life))
    policy = nodes.make_policy(session, network, 'actor/0', counts)
    return policy.initial_state([0, 1])

  first = states(0)
  node = acting.ActingNode(
    'actor/0', [_Loop()], 4, counts, signals.StopSignal()
  )
  node.run()
  node.report()
  again = states(1)
  assert first['steps'].numpy().tolist() == [0, 0]
  # 400 steps of 8 environments.
  assert again['steps'].numpy().tolist() == [50, 50]
  assert first['random'].numpy().tolist() != again['random'].numpy().tolist()
  counts.close()
