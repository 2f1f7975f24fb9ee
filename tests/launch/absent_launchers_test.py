"""Tests of runs on a Python that lacks what their nodes would be hosted by."""

import importlib.util

import pytest

from repertory import launch
from repertory.components import settings


@pytest.mark.parametrize(
  ('launch_type', 'missing'),
  [('local_mt', 'launchpad'), ('local_mp', 'launchpad'), ('ray', 'courier')],
)
def test_is_refused_before_anything_starts(
  monkeypatch, tmp_path, launch_type, missing
):
  find = importlib.util.find_spec
  monkeypatch.setattr(
    importlib.util,
    'find_spec',
    lambda name, *rest: None if name == missing else find(name, *rest),
  )
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path / 'run')
  )
  with pytest.raises(settings.SettingError) as refusal:
    launch.run(experiment, 'distributed', launch_type)
  assert refusal.value.setting == 'launch_type'
  assert missing in refusal.value.problem.lower()
  assert 'Python 3.11' in refusal.value.problem
  assert not (tmp_path / 'run').exists()
