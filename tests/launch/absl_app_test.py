"""Tests of experiments in programs of absl."""

import pytest

from support.system import program

_SCRIPT = """
{import_first}
from absl import app

def main(argv):
  from repertory import launch
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=300, directory='run', evaluation_episodes=0)
  try:
    launch.run(experiment)
    print('RAN')
  except ValueError as error:
    print('REFUSED', error)

app.run(main)
"""


@pytest.mark.chaos
@pytest.mark.parametrize(
  ('import_first', 'outcomes'),
  [
    ('import tensorflow', ['RAN']),
    # It depends on what else is imported, and when, whether that can run.
    ('', ['REFUSED tensorflow must be imported before `absl.app', 'RAN']),
  ],
)
def test_tensorflow_imported_late_is_refused_or_runs(
  tmp_path, import_first, outcomes
):
  script = tmp_path / 'script.py'
  script.write_text(_SCRIPT.replace('{import_first}', import_first))
  ended = program.Program([str(script)], str(tmp_path)).wait(120)
  assert ended.code == 0, ended.output
  assert any(outcome in ended.output for outcome in outcomes)
