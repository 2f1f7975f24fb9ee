"""Tests of experiments in programs of absl."""

import pytest

import program

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


@pytest.mark.parametrize(
  ('import_first', 'outcome'),
  [
    ('import tensorflow', 'RAN'),
    ('', 'REFUSED tensorflow must be imported before `absl.app.run`'),
  ],
)
def test_tensorflow_must_be_imported_first(tmp_path, import_first, outcome):
  script = tmp_path / 'script.py'
  script.write_text(_SCRIPT.replace('{import_first}', import_first))
  ended = program.Program([str(script)], str(tmp_path)).wait(120)
  assert outcome in ended.output
  assert (tmp_path / 'run').exists() == (outcome == 'RAN')
