"""Tests that a run without any learner step reports it."""

import signal
import types

import pytest

from repertory.components import loggers
from repertory.launch.cli import commands
from repertory.launch.opening import run as running


def test_command_reports_what_was_missing(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  command = [
    'train',
    '--env=catch',
    '--steps=60',
    # With two items less there would be an update.
    '--config.min_replay_size=58',
    '--config.jit_compile=false',
    '--evaluation_episodes=0',
  ]
  assert commands.run(command) == 0
  error = capsys.readouterr().err
  assert 'repertory: The learner took no step in this run' in error
  assert "table 'replay' got 58 items, and the learner needs min_" in error
  # Resumed, there is nothing left to do.
  assert commands.run(command) == 0
  assert 'took no step' not in capsys.readouterr().err


@pytest.mark.parametrize(
  ('steps', 'signal_number', 'is_lost'),
  [(0, signal.SIGINT, False), (1, signal.SIGINT, True), (0, None, True)],
)
def test_interruption_before_the_first_step_loses_nothing(
  tmp_path, steps, signal_number, is_lost
):
  experiment = types.SimpleNamespace(directory=str(tmp_path))
  session = types.SimpleNamespace(
    experiment=experiment, counts={'learner_steps': 0, 'steps': steps}
  )
  status = loggers.Status('run', steps=steps)
  result = running._describe_end(session, status, signal_number, '')
  assert ('No checkpoint' in result.not_saved) == is_lost
