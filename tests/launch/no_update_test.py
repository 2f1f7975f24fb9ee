"""Tests that a run without any learner step reports it."""

import pytest

from repertory import launch
from repertory.launch.cli import commands


def _run(directory, topology='single', max_steps=20):
  """Runs IMPALA, whose batch is of eight unrolls of five steps."""
  experiment = launch.make_experiment(
    'impala',
    'catch',
    max_steps=max_steps,
    directory=str(directory),
    config={
      'unroll_length': 5, 'batch_size': 8, 'hidden_sizes': (8,),
      'jit_compile': False,
    },
    environments_per_actor=1, evaluation_episodes=0,
  )  # fmt: skip
  return launch.run(experiment, topology, display=False)


@pytest.mark.chaos
@pytest.mark.parametrize('topology', ['single', 'distributed'])
def test_result_says_what_was_missing(tmp_path, topology):
  result = _run(tmp_path, topology)
  assert result.status.learner_steps == 0
  # It was not refused, for episodes might have been of one step, and so of two
  # timesteps: 2 × 20 / 5 = 8 unrolls. They were of nine steps.
  message = result.why_no_update or ''
  assert "table 'replay' got 4 items, and the learner needs batch" in message
  assert 'needs batch_size = 8 items' in message
  # Resumed, there is nothing left to do.
  assert _run(tmp_path, topology).why_no_update is None


def test_command_line_says_it(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  code = commands.run(
    [
      'train',
      '--env=catch',
      '--steps=60',
      # With two items less there would be an update.
      '--config.min_replay_size=58',
      '--config.jit_compile=false',
      '--evaluation_episodes=0',
    ]
  )
  assert code == 0
  error = capsys.readouterr().err
  assert 'repertory: The learner took no step in this run' in error
