"""Tests of single-threaded runs with faulty or slow environments."""

import pathlib
import signal
import time

import pytest

from repertory import launch
from repertory.components.transports import transport
from repertory.environments.registry import registry
from repertory.launch.experiments import directories
from repertory.launch.nodes import actor
from repertory.launch.platform import interrupts, watchdog
from repertory.launch.topologies import single
from support.environments import troubled_environments
from support.launch import sessions
from support.system import program


def _raise(error):
  raise error


def test_errors_of_an_environment_fail_its_node(tmp_path):
  error = SystemExit(0)
  factory = troubled_environments.Troubled(2, 'step', lambda: _raise(error))
  with pytest.raises(launch.NodeError) as caught:
    launch.run(
      troubled_environments.make_experiment(
        tmp_path, factory, deterministic=True
      ),
      display=False,
    )
  assert caught.value.failure.node == 'actor/0'
  assert type(error).__name__ in caught.value.failure.summary
  checkpoint = directories.load_checkpoint(str(tmp_path / 'run'))
  assert checkpoint is not None
  assert not checkpoint.state['is_exact']  # It failed in a step.


def test_interrupted_before_its_first_step_it_writes_no_checkpoint(tmp_path):
  factory = troubled_environments.Troubled(1, 'step', lambda: None)
  experiment = troubled_environments.make_experiment(tmp_path, factory)
  interruption = interrupts.Interruption()

  def interrupt_when_all_is_made(status):
    if not status.starts:
      interruption.set()

  with sessions.open_session(experiment, topology='single') as session:
    status = single.Single().run(
      session, None, interruption, interrupt_when_all_is_made
    )
    assert status.steps == 0
  assert directories.load_checkpoint(experiment.directory) is None


def test_second_interrupt_ends_it_at_once(tmp_path):
  """Also in a step that began before the first one."""

  def interrupt_twice():
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)

  factory = troubled_environments.Troubled(2, 'step', interrupt_twice)
  experiment = troubled_environments.make_experiment(tmp_path, factory)
  # A shell that runs the tests in the background may ignore it.
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  try:
    with pytest.raises(KeyboardInterrupt):
      launch.run(experiment, display=False)
  finally:
    signal.signal(signal.SIGINT, before)


def test_environment_that_cannot_be_made_is_refused(tmp_path):
  error = OSError('no screen')
  factory = troubled_environments.Troubled(1, 'make', lambda: _raise(error))
  experiment = troubled_environments.make_experiment(tmp_path, factory)
  expected = rf"'own environment' cannot be made:\nTraceback[^$]*{error}\n$"
  with pytest.raises(ValueError, match=expected) as caught:
    launch.run(experiment, display=False)
  assert caught.value.__cause__ is error
  assert not list(tmp_path.iterdir())


_HANGING = """
import pathlib, sys, time
from repertory import launch
from repertory.launch.platform import watchdog
sys.path.insert(0, {tests!r})
from support.environments import troubled_environments

watchdog.START_SECONDS = 8.0
factory = troubled_environments.Troubled(
  {which}, {what!r}, lambda: time.sleep(10**6))
experiment = troubled_environments.make_experiment(
  pathlib.Path('.'), factory, stall_seconds=8)
try:
  result = launch.run(experiment, display=False)
  print('RESULT', result.status.steps, result.status.message)
except launch.NodeError as error:
  print('NODE', error)
except TimeoutError as error:
  print('TIMEOUT', error)
"""


@pytest.mark.chaos
@pytest.mark.parametrize(
  ('which', 'what', 'expected'),
  [
    (1, 'make', "TIMEOUT Waited 8 seconds for environment 'own environment'"),
    (3, 'make', "NODE Node 'evaluator' failed:\nThe run has made no progress"),
    (2, 'close', 'RESULT 600 actor/0 could not be closed: '),
  ],
)
def test_hanging_environments_are_noticed(tmp_path, which, what, expected):
  code = _HANGING.format(
    tests=str(pathlib.Path(__file__).parents[1]), which=which, what=what
  )
  ended = program.Program(['-c', code], str(tmp_path)).wait(120)
  assert expected in ended.output
  assert ended.left == []


def test_actor_that_hangs_while_it_is_restored_is_noticed(
  tmp_path, monkeypatch
):
  states, init = transport.ActorStates, actor.ActorNode.__init__

  def init_and_hurry(*arguments, **settings):
    init(*arguments, **settings)
    monkeypatch.setattr(watchdog, 'START_SECONDS', 0.5)

  monkeypatch.setattr(transport, 'ActorStates', lambda: states(b'saved'))
  monkeypatch.setattr(actor.ActorNode, '__init__', init_and_hurry)
  monkeypatch.setattr(actor.ActorNode, 'restore', lambda *_: time.sleep(60))
  experiment = troubled_environments.make_experiment(
    tmp_path, lambda seed: registry.make('catch', seed), deterministic=True,
    stall_seconds=0.5,
  )  # fmt: skip
  with pytest.raises(launch.NodeError, match='has made no progress') as caught:
    launch.run(experiment, display=False)
  assert caught.value.failure.node == 'actor/0'


def test_reports_the_steps_of_its_start(tmp_path):
  experiment = troubled_environments.make_experiment(
    tmp_path, lambda seed: registry.make('catch', seed)
  )
  shown = []
  with sessions.open_session(experiment, topology='single') as session:
    single.Single().run(session, None, interrupts.Interruption(), shown.append)
  starts = [
    (start.name, start.doing) for status in shown for start in status.starts
  ]
  assert starts == [
    ('learner', 'making its network'),
    ('learner', 'compiling its update'),
    ('actor/0', 'making its environments'),
    ('actor/0', 'compiling its policy'),
    ('evaluator', 'making its environments, and compiling its policy'),
  ]
  assert shown[-1].starts == ()
