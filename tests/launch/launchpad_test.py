"""Tests of nodes started by Launchpad."""

import concurrent.futures

import pytest

from repertory import launch
from repertory.components.config import settings
from support.system import stacks

pytest.importorskip('launchpad', reason=stacks.NO_LAUNCHPAD)


def test_is_refused_outside_the_main_thread(tmp_path):
  experiment = launch.make_experiment(
    'dqn', 'catch', max_steps=1000, directory=str(tmp_path / 'run')
  )
  with concurrent.futures.ThreadPoolExecutor(1) as executor:
    call = executor.submit(launch.run, experiment, 'distributed')
    with pytest.raises(settings.SettingError) as refusal:
      call.result(60)
  assert refusal.value.setting == 'launch_type'
  assert "main thread, got 'local_mt' in another" in refusal.value.problem
  assert not (tmp_path / 'run').exists()
