"""Tests of environment variables set by importing the package."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
  'name', ['TF_FORCE_GPU_ALLOW_GROWTH', 'TF_ENABLE_ONEDNN_OPTS']
)
@pytest.mark.parametrize('before', [None, 'false', 'true'])
def test_is_set_unless_it_was(name, before):
  environment = {k: v for k, v in os.environ.items() if k != name}
  if before is not None:
    environment[name] = before
  found = subprocess.run(
    [
      sys.executable,
      '-c',
      'import os, repertory, sys\n'
      "assert 'tensorflow' not in sys.modules, 'reads them when imported'\n"
      f'print(os.environ[{name!r}])',
    ],
    env=environment,
    check=True,
    capture_output=True,
    text=True,
    timeout=120,
  )
  defaults = {'TF_FORCE_GPU_ALLOW_GROWTH': 'true', 'TF_ENABLE_ONEDNN_OPTS': '1'}
  assert found.stdout.strip() == (before or defaults[name])
