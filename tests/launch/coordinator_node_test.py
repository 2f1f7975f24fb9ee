"""Tests of the coordinator node and its clients."""

import contextlib

import pytest

from repertory import launch
from repertory.components.network import callers
from repertory.components.runtime import signals
from repertory.launch import failures
from repertory.launch.coordination import reports
from repertory.launch.launchers import calls, rpc
from repertory.launch.nodes import coordinator, node
from repertory.launch.platform import ports
from support.launch import sessions

_SECONDS = 30.0
_TOKEN = 'the token'


@pytest.fixture(name='sign')
def _sign(tmp_path, each_carrier):
  """Makes clients of a coordinator, each with a caller identity."""
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path / 'run')
  )
  with contextlib.ExitStack() as stack:
    session = stack.enter_context(sessions.open_session(experiment))
    context = node.Context(
      'coordinator', None, {}, signals.StopSignal(), token=_TOKEN,
      can_restart=True, closing=stack,
    )  # fmt: skip
    made = coordinator.CoordinatorNode(context, session)
    port = stack.enter_context(ports.held())
    library = rpc.get(each_carrier)
    stack.enter_context(
      library.serving(port, made.served, num_threads=4, token=_TOKEN)
    )

    def sign(name, generation=0, token=_TOKEN):
      client = library.make_client(f'localhost:{port}', _SECONDS, _TOKEN)
      return calls.AuthenticatedClient(
        client, callers.Caller(name, generation, token)
      )

    yield sign


def _report(client, steps):
  report = reports.ActorReport(steps, steps, [])
  return client.report_actor('actor/0', report)


def test_reports_of_an_old_generation_are_refused(sign):
  launcher, old = sign('launcher'), sign('actor/0')
  launcher.expect(['learner', 'actor/0'])
  old.register('actor/0', {})
  assert old.acquire_steps('actor/0', 1) > 0
  assert _report(old, 5).steps == 5
  failure = failures.Failure('actor/0', 'Its host was lost.', is_lost=True)
  assert launcher.futures.decide_restart(failure).result(_SECONDS)
  for call in (
    lambda: _report(old, 3),
    lambda: old.acquire_steps('actor/0', 1),
    lambda: old.finish('actor/0'),
    lambda: old.fail(failure),
    lambda: old.futures.poll('actor/0').result(_SECONDS),
  ):
    with pytest.raises(Exception, match='actor/0 was replaced'):
      call()
  new = sign('actor/0', generation=1)
  new.register('actor/0', {})
  assert _report(new, 2).steps == 7
  assert launcher.observe().phase == reports.ACTING


def test_another_run_is_refused(sign):
  stranger = sign('actor/0', token='another')
  for call in (
    lambda: stranger.acquire_steps('actor/0', 1),
    lambda: stranger.stop('because I say so'),
  ):
    with pytest.raises(Exception, match='must have the token'):
      call()
  assert sign('launcher').reply().phase == reports.ACTING
