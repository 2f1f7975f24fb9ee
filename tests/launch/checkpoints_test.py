"""Tests of the checkpoint writer: schedule, contents and errors."""

import contextlib
import json
import os
import shutil
import threading
import time
import types
from typing import Any

import numpy as np
import pytest

from repertory import launch
from repertory.components.checkpoints import checkpointing
from repertory.launch.coordination import coordinator as coordinator_lib
from repertory.launch.experiments import directories
from repertory.launch.nodes import checkpoints
from repertory.launch.nodes import learner as nodes
from repertory.launch.nodes import replay as replay_lib
from repertory.launch.platform import interrupts
from support.launch import lone_nodes, sessions
from support.system import real_disk_errors, stacks

_NEVER = 1e6
# Less than the arrays have, more than a log.
_SMALL = 20_000


class Run:
  """The parts of a run in this thread, stepped by a test."""

  def __init__(self, directory, stack, **settings):
    settings = {'checkpoint_period_seconds': _NEVER, **settings}
    self.session = stack.enter_context(
      sessions.open_session(make_experiment(directory, **settings))
    )
    self.coordinator = coordinator_lib.Coordinator(self.session)
    stack.callback(self.coordinator.close)
    server = replay_lib.ReplayNode(
      lone_nodes.make_context('replay', self.coordinator, closing=stack),
      self.session,
    )
    stop = interrupts.Interruption()
    self.transport = self.session.connect(server.address, stop)
    self.learner = nodes.LearnerNode(
      lone_nodes.make_context(
        'learner/0', self.coordinator, stop, closing=stack
      ),
      self.session,
      self.transport,
    )
    self.coordinator.register('learner/0', self.learner.description)
    self.actor = lone_nodes.make_actor(
      self.session,
      self.transport,
      self.learner,
      self.coordinator,
      closing=stack,
    )

  def learn(self, num_updates):
    """Acts and learns for a number of further learner steps."""
    goal = self.learner.version + num_updates
    while self.learner.version < goal:
      self.actor.step()
      self.learner.catch_up(self.actor.num_items, self.actor.flush)
    self.actor.report()
    self.actor.flush()

  def status(self):
    return self.transport.statuses()['replay']

  @property
  def is_writing(self):
    """Whether a checkpoint is being written, or its result is pending."""
    return self.learner._checkpoints._writing is not None

  def settle(self):
    """Blocks until the current checkpoint is written."""
    deadline = time.monotonic() + 60
    while self.is_writing:
      assert time.monotonic() < deadline
      time.sleep(0.01)
      self.learner.checkpoint_if_due()

  def checkpoint(self):
    """Writes a checkpoint as in the middle of a run."""
    self.learner._checkpoints.begin()
    self.settle()

  def saved(self):
    return directories.load_checkpoint(self.session.experiment.directory)

  def names(self):
    return sorted(os.listdir(self.session.checkpoint_directory))

  def warnings(self):
    with open(os.path.join(self.session.log_directory, 'nodes.jsonl')) as file:
      rows = [json.loads(line) for line in file]
    rows = [row for row in rows if 'warning' in row]
    assert {row['node'] for row in rows} <= {self.learner.name}
    return [row['warning'] for row in rows]


def make_experiment(directory, **settings):
  return launch.make_experiment(
    'dqn',
    'catch',
    max_steps=100_000,
    directory=str(directory),
    # XLA would take most of the time.
    config={'min_replay_size': 50, 'jit_compile': False},
    evaluation_episodes=0,
    **settings,
  )


@pytest.fixture(name='start')
def _start(tmp_path):
  with contextlib.ExitStack() as stack:
    yield lambda **settings: Run(tmp_path, stack, **settings)


class TestWhen:
  def test_after_a_number_of_learner_steps(self, start):
    run = start(checkpoint_period_learner_steps=10, checkpoints_to_keep=9)
    last, numbers = 0, set()
    while run.learner.version < 34:
      run.learn(1)  # Perhaps several, at the end of an episode.
      run.learner.checkpoint_if_due()
      run.settle()
      if run.learner.version >= last + 10:
        last = run.learner.version
      checkpoint = run.saved()
      saved = checkpoint.state['counts']['learner_steps'] if checkpoint else 0
      assert saved == last
      numbers.add(saved)
    assert len(numbers) == 4

  def test_after_a_period_of_time(self, start, monkeypatch):
    now = 1_000.0
    clock = types.SimpleNamespace(monotonic=lambda: now, sleep=time.sleep)
    monkeypatch.setattr(checkpoints, 'time', clock)
    run = start(checkpoint_period_seconds=30.0)
    run.learn(1)
    # After the start, and after the checkpoint before.
    for name in ('00000001', '00000002'):
      now += 29.9
      run.learner.checkpoint_if_due()
      assert not run.is_writing
      now += 0.2
      run.learner.checkpoint_if_due()
      run.settle()
      assert run.names()[-1] == name


class TestWhat:
  def test_is_a_consistent_snapshot(self, start, tmp_path):
    """Though the run continues while it is written."""
    run = start(checkpoint_period_learner_steps=100)
    run.learn(100)
    learner_steps = run.learner.version
    counts = run.coordinator.save()['counts'] | {'learner_steps': learner_steps}
    inserts = run.status().inserts
    variables = run.learner.learner.save()
    run.learner.checkpoint_if_due()
    run.learn(50)
    run.settle()
    assert run.status().inserts > inserts
    checkpoint = run.saved()
    assert checkpoint.state['counts'] == counts
    assert checkpoint.state['tables']['replay']['inserts'] == inserts
    for name, variable in variables.items():
      np.testing.assert_array_equal(checkpoint.arrays[name], variable)
    with contextlib.ExitStack() as other:
      # Nobody else has the copy's lock.
      copy = _copy(tmp_path)
      resumed = Run(copy, other)
      assert resumed.status().inserts == inserts
      assert resumed.learner.version == learner_steps

  @pytest.mark.chaos
  def test_priorities_of_the_last_update_are_in_it(self, start, tmp_path):
    stacks.require_reverb()
    run = start()
    least = run.session.experiment.builder.config.min_priority
    sent = {}
    updater = run.learner._end.priorities
    update = updater.update

    def note(keys, priorities):
      update(keys, priorities)
      sent.update(zip(keys.tolist(), priorities.tolist()))

    client: Any = run.transport.place.client
    mutate = client.mutate_priorities

    def mutate_slowly(*args, **kwargs):
      time.sleep(0.05)
      mutate(*args, **kwargs)

    updater.update = note
    client.mutate_priorities = mutate_slowly
    run.learn(20)
    run.checkpoint()
    with contextlib.ExitStack() as other:
      resumed = Run(_copy(tmp_path), other)
      # The learner had taken what it could: each new item allows 16 samples.
      inserts = resumed.status().inserts
      while resumed.status().inserts < inserts + 7:
        resumed.actor.step()
      client: Any = resumed.transport.place.client
      items = client.sample('replay', 100, emit_timesteps=False)
      info = [item.info for item in items]
      checked = [i for i in info if i.key in sent]
      assert len(checked) > 10
      for item in checked:
        priority = max(sent[item.key], least)
        assert item.priority == pytest.approx(priority, rel=1e-4)

  @pytest.mark.chaos
  def test_counts_in_replay_are_checked(self, start, tmp_path):
    run = start()
    run.learn(5)
    run.checkpoint()
    checkpoint = run.saved()
    state = dict(checkpoint.state)
    inserts = state['tables']['replay']['inserts']
    state['tables'] = {'replay': {'inserts': inserts + 1, 'samples': 0}}
    run.session.make_checkpointer().save(
      checkpoint.arrays, state, checkpoint.replay_path
    )
    message = f'should resume from {inserts + 1} inserts.*restored {inserts} '
    with (
      contextlib.ExitStack() as other,
      pytest.raises(checkpointing.CheckpointError, match=message),
    ):
      Run(_copy(tmp_path), other)

  @pytest.mark.chaos
  def test_replay_has_no_other_links(self, start, tmp_path):
    """Else removing a checkpoint would free no space."""
    run = start()
    run.learn(5)
    for _ in range(3):
      run.checkpoint()
    assert os.listdir(run.session.replay_directory) == []
    files = [
      os.path.join(root, name)
      for root, _, names in os.walk(run.session.checkpoint_directory)
      for name in names
    ]
    assert {os.stat(file).st_nlink for file in files} == {1}
    with contextlib.ExitStack() as other:
      resumed = Run(_copy(tmp_path), other)
      assert os.listdir(resumed.session.replay_directory) == []


def _copy(directory, number=0):
  """Copies a locked directory, to open it a second time."""
  copy = directory / f'copy{number}'
  os.makedirs(copy)
  for name in ('checkpoints', 'logs'):
    shutil.copytree(directory / name, copy / name)
  return copy


class TestErrors:
  def test_warn_keeps_the_last_and_tries_again(self, start):
    run = start(checkpoint_period_learner_steps=10)
    run.learn(10)
    run.learner.checkpoint_if_due()
    run.settle()
    first = run.learner.version
    run.learn(10)
    with real_disk_errors.file_size_limit(_SMALL):
      run.learner.checkpoint_if_due()
      run.settle()
      assert run.learner.checkpoint() is None
      assert run.saved().state['counts']['learner_steps'] == first
      # Nothing of it is left.
      kept = [name for name in run.names() if name != '.replay']
      assert kept == ['00000001']
      for warning in run.warnings():
        assert 'OSError: [Errno 27] File too large' in warning
      assert len(run.warnings()) == 2
    failed = run.learner.version
    run.learn(1)
    assert run.learner.version < failed + 10
    run.learner.checkpoint_if_due()  # Not before the period is over.
    assert not run.is_writing
    run.learn(9)
    run.learner.checkpoint_if_due()
    run.settle()
    assert run.saved().state['counts']['learner_steps'] == run.learner.version
    assert os.listdir(run.session.replay_directory) == []
    assert len(run.warnings()) == 2

  def test_raise_ends_the_run(self, start):
    run = start(checkpoint_errors='raise')
    run.learn(1)
    run.checkpoint()
    with real_disk_errors.file_size_limit(_SMALL):
      for save in run.checkpoint, run.learner.checkpoint:
        with pytest.raises(
          checkpointing.CheckpointWriteError,
          match='The previous checkpoint is kept',
        ) as raised:
          save()
        assert isinstance(raised.value.__cause__, OSError)
    assert run.names()[-1] == '00000001'
    assert run.warnings() == []

  def test_close_leaves_no_thread_and_nothing_half(self, start):
    run = start(checkpoint_period_learner_steps=1)
    for _ in range(2):
      run.learn(1)
      run.learner.checkpoint_if_due()
      run.learner._checkpoints.close()
      assert 'checkpoint' not in [t.name for t in threading.enumerate()]
      run.learner._checkpoints._writing = None
      run.learner._checkpoints._is_closed = False
    assert not [n for n in run.names() if n.startswith('.writing')]

  def test_close_does_not_wait_for_a_slow_disk(self, start, monkeypatch):
    """Else the timeout would never be reported."""
    monkeypatch.setattr(checkpoints, '_CLOSE_SECONDS', 0.2)
    run = start(checkpoint_replay=False, timeout_seconds=1.0)
    run.learn(1)
    checkpointer = run.learner._checkpoints._checkpointer
    save, disk_works = checkpointer.save, threading.Event()

    def save_slowly(*arguments):
      assert disk_works.wait(60)
      return save(*arguments)

    checkpointer.save = save_slowly
    with pytest.raises(TimeoutError, match='Waited 1 seconds for a checkpoint'):
      run.learner.checkpoint()
    closing = threading.Thread(
      target=run.learner._checkpoints.close, daemon=True
    )
    closing.start()
    closing.join(10)
    is_closed = not closing.is_alive()
    disk_works.set()
    assert is_closed
