"""Tests of callbacks: validation, and runs with callbacks."""

import io
import signal
import time

import numpy as np
import pytest

from repertory import launch
from repertory.components.config.settings import SettingError
from repertory.launch.experiments import callbacks, directories
from support.launch import log_files, recording_hooks, sessions


def _make(directory, **settings):
  return launch.make_experiment(
    'dqn',
    'catch',
    config={
      'hidden_sizes': (8,), 'min_replay_size': 50, 'batch_size': 8,
      'samples_per_insert': 1.0, 'jit_compile': False,
    },
    directory=str(directory),
    **{'max_steps': 600, 'evaluation_episodes': 2, **settings},
  )  # fmt: skip


class _Misspelled(launch.Callback):
  def on_episode(self, episodes):
    raise AssertionError('Nobody calls it.')


class TestRefused:
  @pytest.mark.parametrize(
    ('setting', 'value', 'problem'),
    [
      ('callbacks', 3, 'must be a list of `launch.Callback` objects; got 3'),
      ('callbacks', [launch.Callback], 'at index 0. Write Callback().'),
      ('callbacks', [print], 'got <built-in function print> at index 0'),
      (
        'callbacks',
        [launch.Callback(), _Misspelled()],
        'callbacks[1] of class _Misspelled has on_episode. Did you mean '
        "'on_episodes'?",
      ),
      ('loggers', [launch.Callback()], '`launch.RowLogger`'),
      ('stop_when', 20.0, 'must be a function of the status, or None; got 20'),
    ],
  )
  def test_invalid_callbacks(self, tmp_path, setting, value, problem):
    with pytest.raises(SettingError) as caught:
      _make(tmp_path, **{setting: value})
    assert caught.value.setting == setting
    assert problem in caught.value.problem

  def test_return_without_evaluations(self, tmp_path):
    with pytest.raises(SettingError, match='stop_at_return must be left out'):
      _make(
        tmp_path, evaluation_episodes=0, stop_when=callbacks.StopAtReturn(1.0)
      )

  @pytest.mark.parametrize('setting', ['callbacks', 'loggers', 'stop_when'])
  def test_what_cannot_be_sent_to_a_process(self, tmp_path, setting):
    callback, logger = recording_hooks.Callback(), recording_hooks.Logger()
    file = io.FileIO('/dev/null')
    callback.file = logger.file = file
    value = {
      'callbacks': [launch.Callback(), callback],
      'loggers': [logger],
      'stop_when': lambda status: file.closed,
    }[setting]
    experiment = _make(tmp_path / 'run', **{setting: value})
    with pytest.raises(SettingError) as caught:
      launch.run(experiment, 'distributed', 'local_mp', display=False)
    assert caught.value.setting == setting
    name = {'callbacks': 'callbacks[1]', 'loggers': 'loggers[0]'}.get(setting)
    assert f'got {name or "stop_when"}, a ' in caught.value.problem
    assert 'cannot pickle' in caught.value.problem
    assert not list(tmp_path.iterdir())


def test_they_are_not_what_an_experiment_is(tmp_path):
  """So a run may be resumed with other callbacks."""
  with_hooks = _make(
    tmp_path,
    callbacks=[launch.Callback()],
    loggers=[recording_hooks.Logger()],
    stop_when=callbacks.StopAtReturn(1.0),
  )
  with sessions.open_session(with_hooks) as session:
    identity = with_hooks.identity(session.experience)
    assert identity == _make(tmp_path).identity(session.experience)


class TestRuns:
  def test_observer_that_fails_ends_the_run_after_a_checkpoint(self, tmp_path):
    bad = recording_hooks.Callback('on_evaluation')
    good = recording_hooks.Callback()
    experiment = _make(
      tmp_path, max_steps=10**6, evaluation_period=300, callbacks=[bad, good]
    )
    with pytest.raises(launch.NodeError) as caught:
      launch.run(experiment, display=False)
    assert 'callbacks[0] (Callback) failed:\n' in str(caught.value)
    assert 'ValueError: no more' in str(caught.value)
    assert bad.names()[-1] == 'on_evaluation'
    (end,) = good.all_of('on_end')
    assert (end.outcome, end.reason) == ('failed', 'ValueError: no more')
    checkpoint = directories.load_checkpoint(str(tmp_path))
    assert checkpoint.state['counts']['steps'] == end.status.steps >= 300

  def test_interruption_is_reported(self, tmp_path):
    class Interrupting(recording_hooks.Callback):
      has_interrupted = False

      def on_learner_row(self, row):
        if not self.has_interrupted:  # A second one would end the tests.
          self.has_interrupted = True
          signal.raise_signal(signal.SIGINT)

    callback = Interrupting()
    experiment = _make(tmp_path, max_steps=10**6, callbacks=[callback])
    # It may be ignored if the tests were started in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
      result = launch.run(experiment, display=False)
    finally:
      signal.signal(signal.SIGINT, before)
    assert result.interrupted == signal.SIGINT
    assert result.stopped_early is None
    (end,) = callback.all_of('on_end')
    assert (end.outcome, end.reason) == ('interrupted', 'interrupted')
    assert end.status.steps == result.status.steps

  def test_early_end_follows_from_the_seed(self, tmp_path):
    """It equals a run with that number of steps."""

    def run(name, **settings):
      settings = {'evaluation_period': 100, 'deterministic': True, **settings}
      return launch.run(_make(tmp_path / name, **settings), display=False)

    returns = []

    def is_third(status):
      time.sleep(0.05)  # Meanwhile nobody may take a step.
      if status.evaluation_return is not None:
        returns.append(status.evaluation_steps)
      return len(set(returns)) == 3

    stopped = run('stopped', stop_when=is_third)
    assert stopped.status.steps == 300
    assert stopped.stopped_early == 'stop_when returned true'
    # What the evaluation saw last was not evaluated once more.
    steps = [row['steps'] for row in log_files.rows(tmp_path / 'stopped',
                                                    'evaluator')]  # fmt: skip
    assert steps == [100, 200, 300]
    whole = run('whole', max_steps=300)
    assert whole.stopped_early is None
    assert stopped.variables_sha256 == whole.variables_sha256

  @pytest.mark.chaos
  def test_resumed_run_continues(self, tmp_path):
    launch.run(_make(tmp_path, max_steps=300), display=False)
    callback = recording_hooks.Callback()
    launch.run(_make(tmp_path, callbacks=[callback]), display=False)
    (run,) = callback.all_of('on_start')
    assert run.is_resumed
    assert (run.steps, run.settings['max_steps']) == (300, 600)
    assert run.episodes == 300 // 9
    last = callback.all_of('on_episodes')[-1]
    lengths = np.concatenate(
      [e.lengths for e in callback.all_of('on_episodes')]
    )
    assert last.num_episodes == run.episodes + len(lengths)
