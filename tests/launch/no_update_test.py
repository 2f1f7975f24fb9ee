"""Tests that a run without any learner step reports it."""

from repertory.launch.cli import commands


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
